"""Words in timed text: lines on screen, captions of scenes and labels of sounds that hold the query's words.

Lines that stand in the picture at the same time are read together: a slide's title and its points, the two rows of a
sign. A word with one letter wrong counts less, and only where words on screen were asked for (``text:``). A caption is
a model's opinion of a picture, so it makes no moment more than fair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.tracks.descriptions import best_captions, count_captions
from momentseek.library.tracks.readings import best_lines, count_lines, near_spellings
from momentseek.library.tracks.sounds import events_with_labels, sound_labels
from momentseek.library.words import WordMatcher, content_words, plain_words
from momentseek.search.hit import Level, StreamHit
from momentseek.search.state import Ids

MAX_WORDS = 24
"""Words of a text that are looked for."""
FAIR_SHARE = 0.6
"""Share of the words' weight from which a moment is a fair hit."""


def word_level(share: float, found: int, only_here: bool) -> Level:
    """How sure a moment is that has a share of the words' weight, and so many of them.

    ``only_here`` says that the words were asked for as speech (``said:``), or as writing (``text:``); else they may
    also be about the picture, and one word alone is no proof.
    """
    if share > 0.999:
        return "strong" if only_here or found > 1 else "fair"
    return "fair" if share >= FAIR_SHARE else "weak"


def rarity(counts: Sequence[int], total: int) -> NDArray[np.float64]:
    """BM25's weight of each word; a word that is nowhere counts as if it were in one text."""
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in (max(1, n) for n in counts)]) + 1e-9


def rarest_words(terms: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The rarest words of a text that are anywhere, ``MAX_WORDS`` at most, so that any search is quick.

    >>> rarest_words(["the", "unicorn", "dog"], [90, 0, 3])
    ['dog', 'the']
    """
    return [terms[i] for i in sorted(range(len(terms)), key=lambda i: (counts[i], i)) if counts[i]][:MAX_WORDS]


MAX_EVENTS = 400
"""Events that are looked at."""
SURE_SCORE = 0.5
"""Score of an event from which its label can make a hit strong; a detector that is less sure makes it fair at most."""


class SoundMatch(NamedTuple):
    """A sound whose label has most of the words that are looked for."""

    hit: StreamHit
    score: float
    """How sure the detector is of it."""
    order: int
    """Its place among the equals of its video."""


def search_sounds(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[StreamHit]:
    """Hits on sounds whose labels have most of the words of a text, best first: by the words, then by the score."""
    return best_sounds(find_sounds(catalog, text, allowed))


def find_sounds(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[SoundMatch]:
    """The surest sounds whose labels have most of the words of a text, ``MAX_EVENTS`` at most."""
    terms, labels = content_words(text), sound_labels(catalog)
    if not terms or not labels:
        return []
    found = WordMatcher(labels).matches(terms).sum(axis=1)
    shares = {
        label: float(count) / len(terms)
        for label, count in zip(labels, found.tolist(), strict=True)
        if count >= FAIR_SHARE * len(terms)
    }
    out = []
    for at, (video, event) in enumerate(events_with_labels(catalog, shares, allowed, MAX_EVENTS)):
        share = shares[event.label]
        level = word_level(share, round(share * len(terms)), only_here=False)
        if event.score < SURE_SCORE and level == "strong":
            level = "fair"
        out.append(SoundMatch(StreamHit(video, event.start, event.end, share + event.score, level), event.score, at))
    return out


def best_sounds(found: Sequence[SoundMatch]) -> list[StreamHit]:
    """Hits of the surest of some sounds, best first."""
    surest = sorted(found, key=lambda match: (-match.score, match.hit.video, match.order))[:MAX_EVENTS]
    return sorted((match.hit for match in surest), key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))


class TimedText(Protocol):
    """A text with its times."""

    @property
    def start(self) -> float: ...

    @property
    def end(self) -> float: ...

    @property
    def text(self) -> str: ...

    @property
    def at(self) -> float:
        """Time in seconds of the frame to show."""


class TimedMatch(Protocol):
    """A text that holds words of a query."""

    @property
    def video(self) -> int: ...

    @property
    def line(self) -> TimedText: ...

    @property
    def bm25(self) -> float: ...


def word_hits(
    matches: Sequence[TimedMatch], values: NDArray[np.float64], weight: NDArray[np.float64], *, only_here: bool
) -> list[StreamHit]:
    """StreamHits of texts with times, best first; ``values`` ``(texts, words)`` says which has which word.

    ``only_here`` says that the words were asked for in these texts; else they may also be about the picture, and weak
    hits are left out.
    """
    out = []
    for group in join_lines(matches, values):
        value = values[group].max(axis=0)
        share = float((weight * value).sum() / weight.sum())
        level = word_level(share, int((value == 1).sum()), only_here)
        if level == "weak" and not only_here:
            continue
        bm25 = max(matches[i].bm25 for i in group)
        score = float((weight * value).sum()) + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        lines = [matches[i].line for i in group]
        best = lines[int(np.argmax((values[group] * weight).sum(axis=1)))]
        start, end = max(line.start for line in lines), min(line.end for line in lines)
        peak = min(max(best.at, start), end)
        out.append(StreamHit(matches[group[0]].video, start, end, score, level, peak))
    return sorted(out, key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))


def join_lines(matches: Sequence[TimedMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join lines that stand in the picture together and bring missing words; returns positions by group."""
    order = sorted(range(len(matches)), key=lambda i: (-values[i].sum(), matches[i].video, matches[i].line.start, i))
    groups: list[list[int]] = []
    by_video: dict[int, list[list[int]]] = {}
    for i in order:
        line = matches[i].line
        for group in by_video.get(matches[i].video, ()):
            start = max(matches[j].line.start for j in group)
            end = min(matches[j].line.end for j in group)
            brings = (values[i] > values[group].max(axis=0)).any()
            if brings and line.start < end and start < line.end:
                group.append(i)
                break
        else:
            groups.append([i])
            by_video.setdefault(matches[i].video, []).append(groups[-1])
    return groups


MAX_LINES = 400
"""Lines that are looked at."""
MISSPELT = 0.7
"""What a word counts that was read with one letter wrong."""


def search_text(catalog: Catalog, text: str, allowed: Ids | None = None, *, only_text: bool = False) -> list[StreamHit]:
    """StreamHits with the words of a text written in the picture, best first.

    ``only_text`` says that the words were asked for as writing (``text:``); else they may also be about the picture.
    """
    terms = content_words(text)
    if not terms or not catalog.has_readings or not (total := count_lines(catalog)):
        return []
    counts = [count_lines(catalog, term) for term in terms]
    other = {term: near_spellings(catalog, term) if only_text else [] for term in terms}
    matches = best_lines(catalog, rarest_words(terms, counts), allowed, MAX_LINES)
    misspelt = best_lines(catalog, all_spellings(other), allowed, MAX_LINES, spelt=True)
    known = {match.id for match in matches}
    matches += [match for match in misspelt if match.id not in known]
    return judge_lines(matches, terms, other, rarity(counts, total), only_text)


def all_spellings(other: Mapping[str, Sequence[str]]) -> list[str]:
    """The other spellings of all words, each once."""
    return list(dict.fromkeys(spelling for some in other.values() for spelling in some))


def judge_lines(
    matches: Sequence[TimedMatch],
    terms: Sequence[str],
    other: Mapping[str, Sequence[str]],
    weight: NDArray[np.float64],
    only_text: bool,
) -> list[StreamHit]:
    """StreamHits of the lines that match some words best, best first.

    ``other`` are spellings of each term with one letter wrong, ``weight`` is what each counts.
    """
    if not matches:
        return []
    return word_hits(matches, _word_values(matches, terms, other), weight, only_here=only_text)


def _word_values(
    matches: Sequence[TimedMatch], terms: Sequence[str], other: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """``(lines, terms)``: 1 where a line has a term, less where it has it with a wrong letter, else 0."""
    texts = [match.line.text for match in matches]
    values = WordMatcher(texts).matches(terms).astype(np.float64)
    held = [set(text.split()) for text in plain_words(texts)]
    for column, term in enumerate(terms):
        spellings = set(other[term])
        for row, words in enumerate(held):
            if spellings & words:
                values[row, column] = max(values[row, column], MISSPELT)
    return values


MAX_CAPTIONS = 400
"""Captions that are looked at."""


def search_described(
    catalog: Catalog, text: str, allowed: Ids | None = None, *, only_described: bool = False
) -> list[StreamHit]:
    """StreamHits with the words of a text in what a model says of a scene, best first.

    ``only_described`` says that the words were asked for in descriptions (``described:``).
    """
    terms = content_words(text)
    if not terms or not catalog.has_descriptions or not (total := count_captions(catalog)):
        return []
    counts = [count_captions(catalog, term) for term in terms]
    matches = best_captions(catalog, rarest_words(terms, counts), allowed, MAX_CAPTIONS)
    return judge_captions(matches, terms, rarity(counts, total), only_described)


def judge_captions(
    matches: Sequence[TimedMatch], terms: Sequence[str], weight: NDArray[np.float64], only_described: bool
) -> list[StreamHit]:
    """StreamHits of the captions that match some words best, best first; ``weight`` is what each term counts."""
    if not matches:
        return []
    values = WordMatcher([match.line.text for match in matches]).matches(terms).astype(np.float64)
    found = word_hits(matches, values, weight, only_here=only_described)
    return [replace(hit, level="fair") if hit.level == "strong" else hit for hit in found]
