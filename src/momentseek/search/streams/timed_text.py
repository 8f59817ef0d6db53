"""Words in timed text: what is said, written on screen, and described by a model.

Words of one sentence are often spread over neighbouring cues, so a cue takes the next ones in while they bring words
that were still missing. Lines that stand in the picture at the same time are read together: a slide's title and its
points, the two rows of a sign. Words are weighted by how rare they are: of "the red lighthouse", a cue with
"lighthouse" has nearly all. A word with one letter wrong counts less, and only where words on screen were asked for
(``text:``). A caption is a model's opinion of a picture, so it makes no moment more than fair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.words import WordMatcher, plain_words
from momentseek.search.hit import Level, StreamHit

TextKind = Literal["cues", "lines", "spellings", "captions", "names"]
"""Texts in which words are looked for; the spellings are lines too, found by words with a letter wrong."""
MAX_TEXTS: Mapping[TextKind, int] = {"cues": 400, "lines": 400, "spellings": 400, "captions": 400, "names": 100}
"""Texts of each kind that are judged."""
MAX_WORDS = 24
"""Words of a text that are looked for."""
FAIR_SHARE = 0.6
"""Share of the words' weight from which a moment is a fair hit."""
NOWHERE_WEIGHT = 0.5
"""What a word counts of its weight that is in no text, next to two words or more that are found together."""
FORM_WORDS = frozenset(
    ("banner", "caption", "label", "logo", "logos", "poster", "screen", "screenshot", "sign", "signs", "text", "title",
     "word", "words", "writing", "written", "reads", "says", "saying")
)  # fmt: skip
"""Words about writing itself: of "google chrome logo", the picture need not say the last."""
MISSPELT = 0.7
"""What a word counts that was read with one letter wrong."""
TRANSCRIPT_WEIGHT = 0.9
"""What words count that a recogniser heard, against words of subtitles: it may have misheard."""
MAX_CUE_GAP_SECONDS = 2.0
"""Longest pause between two cues of one utterance."""
MAX_UTTERANCE_SECONDS = 15.0


class TextMatch(NamedTuple):
    """A text that holds words of a query: a cue, a line on screen, a caption, or the name of a video."""

    id: int
    video: int
    bm25: float
    start: float
    end: float
    at: float
    """Time in seconds of the frame to show."""
    transcribed: bool
    """Whether a recogniser made it."""
    text: str


def judge_texts(
    kind: TextKind,
    matches: Sequence[TextMatch],
    terms: Sequence[str],
    weight: NDArray[np.float64],
    *,
    only_here: bool,
    spellings: Mapping[str, Sequence[str]] | None = None,
    nowhere: NDArray[np.bool_] | None = None,
) -> list[StreamHit]:
    """Hits of the texts of one kind that match some words best, best first.

    ``weight`` is what each of the terms counts, ``spellings`` what each may be misread as, ``nowhere`` which are in no
    text of the kind: where two others are found together, such a word is probably about the picture. ``only_here``
    says that the words were asked for in these texts (``said:``, ``text:``, ``described:``); else they may also be
    about the picture, and weak hits on lines and captions are left out.
    """
    if not matches:
        return []
    values = word_values([match.text for match in matches], terms, spellings or {})
    groups = (join_cues if kind == "cues" else join_lines)(matches, values)
    begins = np.cumsum([0, *map(len, groups)])[:-1]
    best_values = np.maximum.reduceat(values[[at for group in groups for at in group]], begins)
    gains = (weight * best_values).sum(axis=1).tolist()
    counts = (best_values == 1).sum(axis=1).tolist()
    whole = float(weight.sum())
    elsewhere = 0.0 if nowhere is None or only_here else (1 - NOWHERE_WEIGHT) * float(weight[nowhere].sum())
    out = []
    for group, gain, found in zip(groups, gains, counts, strict=True):
        some = [matches[i] for i in group]
        level = word_level(gain / (whole - (elsewhere if found > 1 else 0.0)), found, only_here)
        bm25 = max(match.bm25 for match in some)
        score = gain + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        if kind == "cues":
            score *= TRANSCRIPT_WEIGHT if some[0].transcribed else 1.0
            out.append(StreamHit(some[0].video, some[0].start, max(some[0].end, some[-1].end), score, level))
        elif level != "weak" or only_here:
            start, end = max(match.start for match in some), min(match.end for match in some)
            best = some[int(np.argmax((values[group] * weight).sum(axis=1)))]
            sure = "fair" if kind == "captions" and level == "strong" else level
            out.append(StreamHit(some[0].video, start, end, score, sure, min(max(best.at, start), end)))
    return sorted(out, key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))


def word_values(
    texts: Sequence[str], terms: Sequence[str], spellings: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """``(texts, terms)``: 1 where a text has a term, less where it has it with a wrong letter, else 0."""
    values = WordMatcher(texts).matches(terms).astype(np.float64)
    if any(spellings.values()):
        held = [set(text.split()) for text in plain_words(texts)]
        for column, term in enumerate(terms):
            other = set(spellings.get(term, ()))
            for row, words in enumerate(held):
                if other & words:
                    values[row, column] = max(values[row, column], MISSPELT)
    return values


def join_cues(matches: Sequence[TextMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join cues with those that follow closely and bring missing words; returns positions by utterance."""
    has = values > 0
    order = sorted(range(len(matches)), key=lambda i: (matches[i].video, matches[i].start, matches[i].end))
    out: list[list[int]] = []
    for i in order:
        if out:
            first, last = matches[out[-1][0]], matches[out[-1][-1]]
            if (
                matches[i].video == last.video
                and matches[i].start - last.end <= MAX_CUE_GAP_SECONDS
                and matches[i].end - first.start <= MAX_UTTERANCE_SECONDS
            ):
                covered = has[out[-1]].any(axis=0)
                if (has[i] & ~covered).any() and (covered & ~has[i]).any():
                    out[-1].append(i)
                    continue
        out.append([i])
    return out


def join_lines(matches: Sequence[TextMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join lines that stand in the picture together and bring missing words; returns positions by group."""
    sums = values.sum(axis=1).tolist()
    order = sorted(range(len(matches)), key=lambda i: (-sums[i], matches[i].video, matches[i].start, i))
    groups: list[list[int]] = []
    by_video: dict[int, list[list[int]]] = {}
    for i in order:
        for group in by_video.get(matches[i].video, ()):
            start = max(matches[j].start for j in group)
            end = min(matches[j].end for j in group)
            brings = (values[i] > values[group].max(axis=0)).any()
            if brings and matches[i].start < end and start < matches[i].end:
                group.append(i)
                break
        else:
            groups.append([i])
            by_video.setdefault(matches[i].video, []).append(groups[-1])
    return groups


# how much words count


def word_level(share: float, found: int, only_here: bool) -> Level:
    """How sure a moment is that has a share of the words' weight, and this many of them.

    ``only_here`` says that the words were asked for as speech (``said:``), or as writing (``text:``); else they may
    also be about the picture, and one word alone is no proof.
    """
    if share > 0.999:
        return "strong" if only_here or found > 1 else "fair"
    return "fair" if share >= FAIR_SHARE else "weak"


def asked_in_writing(terms: Sequence[str]) -> list[str]:
    """The words of a query that a line on screen should have: not those about writing itself, if there are others.

    >>> asked_in_writing(["google", "chrome", "logo"]), asked_in_writing(["sign"])
    (['google', 'chrome'], ['sign'])
    """
    return [term for term in terms if term not in FORM_WORDS] or list(terms)


def rarity(counts: Sequence[int], total: int) -> NDArray[np.float64]:
    """BM25's weight of each word; a word that is nowhere counts as if it were in one text."""
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in (max(1, n) for n in counts)]) + 1e-9


def rarest_words(terms: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The rarest words of a text that are anywhere, ``MAX_WORDS`` at most, so that any search is quick.

    >>> rarest_words(["the", "unicorn", "dog"], [90, 0, 3])
    ['dog', 'the']
    """
    return [terms[i] for i in sorted(range(len(terms)), key=lambda i: (counts[i], i)) if counts[i]][:MAX_WORDS]
