"""What is wrong with a dataset: impossible times, repeated entries, leaks between splits, queries against the rules.

TVR's own rules (section 3.1): at least 8 words, and not copied from the subtitles. Public files break the rest, too:
2,286 of Charades-STA's ends lie beyond the video, and four of ActivityNet's moments start after they end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.construct.decisions import Decision
from momentseek.construct.statistics import Split
from momentseek.moments.arrays import BoolArray

FEWEST_WORDS = 8


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and one split: how many break it, and which, in words."""

    check: str
    split: str
    found: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many."""
        return len(self.found)


def check(
    splits: Sequence[Split], *, fewest_words: int = FEWEST_WORDS, subtitles: Mapping[str, str] | None = None
) -> list[Check]:
    """Every rule on every split, in the order of ``splits``; rules that nothing breaks are there with none.

    ``subtitles``: a video's normalised subtitle text; without it nothing is known about copying.

    >>> from momentseek.moments import Judgements
    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [3], [9], durations={"v": 8.0}, queries=["he sits"])
    >>> {c.check: c.found for c in check([Split("s", truth)]) if c.count}
    {'end beyond the video': ('q: 3–9 s of v, which lasts 8 s',), 'fewer than 8 words': ('q: he sits',)}
    """
    rules: dict[str, Callable[[Split], Iterable[str]]] = {
        "end beyond the video": lambda s: _moments(s, s.truth.end > _lasts(s), lasts=True),
        "start beyond the video": lambda s: _moments(s, s.truth.start >= _lasts(s), lasts=True),
        "start >= end": lambda s: _moments(s, s.truth.start >= s.truth.end),
        "negative start": lambda s: _moments(s, s.truth.start < 0),
        "exact duplicate (video, times, words)": duplicates,
        f"fewer than {fewest_words} words": lambda s: (
            f"{q}: {text}"
            for q, text, found in zip(s.truth.query_ids, s.texts, s.words, strict=False)
            if len(found) < fewest_words
        ),
    }
    if subtitles is not None:
        rules["copied from the subtitles"] = lambda s: copied(s, subtitles)
    result = [Check(name, s.name, tuple(rule(s))) for name, rule in rules.items() for s in splits]
    if len(splits) > 1:
        videos = Counter(v for s in splits for v in s.truth.videos)
        texts = Counter(text for s in splits for text in {" ".join(w) for w in s.words})
        for s in splits:
            result.append(
                Check("video also in another split", s.name, tuple(v for v in s.truth.videos if videos[v] > 1))
            )
        for s in splits:
            asked = zip(s.truth.query_ids, s.texts, s.words, strict=False)
            same = tuple(f"{q}: {text}" for q, text, found in asked if texts[" ".join(found)] > 1)
            result.append(Check("words also asked in another split", s.name, same))
    return result


def duplicates(split: Split) -> list[str]:
    """Queries that repeat an earlier query's video, times and words; annotators of one query may well agree."""
    truth, texts = split.truth, split.texts
    if not texts:
        return []
    seen: dict[tuple[str, float, float, str], int] = {}
    found = []
    for q, v, start, end in zip(
        truth.row_query.tolist(), truth.video.tolist(), truth.start.tolist(), truth.end.tolist(), strict=True
    ):
        first = seen.setdefault((truth.videos[v], start, end, texts[q]), q)
        if first != q:
            found.append(f"{truth.query_ids[q]} repeats {truth.query_ids[first]}: {texts[q]}")
    return found


def copied(split: Split, subtitles: Mapping[str, str]) -> list[str]:
    """Queries whose words stand, in this order, in the subtitles of their video."""
    truth = split.truth
    found = []
    for q, text in enumerate(split.texts):
        wanted = " ".join(split.words[q])
        videos = {truth.videos[v] for v in truth.video[truth.offsets[q] : truth.offsets[q + 1]].tolist()}
        if wanted and any(f" {wanted} " in f" {subtitles.get(v, '')} " for v in videos):
            found.append(f"{truth.query_ids[q]}: {text}")
    return found


def as_decisions(checks: Iterable[Check]) -> list[Decision]:
    """Every finding, for the report."""
    return [Decision(text, "found", c.check, {"split": c.split}) for c in checks for text in c.found]


def _lasts(split: Split) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Each row's video duration; NaN, which no time exceeds, where unknown."""
    return split.truth.durations[split.truth.video]


def _moments(split: Split, wrong: BoolArray, lasts: bool = False) -> list[str]:
    truth = split.truth
    found = []
    for r in np.flatnonzero(wrong).tolist():
        query, video = truth.query_ids[truth.row_query[r]], truth.video[r]
        # Eight digits: an end may lie a hundredth of a second beyond the video.
        text = f"{query}: {truth.start[r]:.8g}–{truth.end[r]:.8g} s of {truth.videos[video]}"
        found.append(text + (f", which lasts {truth.durations[video]:.8g} s" if lasts else ""))
    return found
