"""Finds phrases word for word: the same words in the same order, ignoring case, accents and punctuation.

The index contains stems, so it only finds candidates: the cues with a phrase's rarest word, and their neighbours,
because a phrase may begin in one cue and end in the next. The candidates are joined into one text and searched for the
exact words. So each cue is read once, however long or common a phrase is, and there is no limit on the number of cues.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.words import UNSPACED_LETTER, plain_words, words
from momentseek.search.hit import StreamHit
from momentseek.search.stream_index import Ids
from momentseek.search.streams.timed_text import MAX_CUE_GAP_SECONDS, MAX_UTTERANCE_SECONDS

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _PhraseKey:
    """The rarest word of a phrase, which selects the cues to search."""

    word: str
    """The rarest word of the phrase."""
    cues: int
    """Number of cues that hold it."""
    longer: bool
    """Whether the phrase can begin in one cue and end in the next."""


@dataclass(frozen=True, eq=False)
class _CueText:
    """Cues joined into one text: a space before each word, and a newline where the next cue does not follow."""

    video: Rows
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    text: str
    offsets: Rows
    words: Rows
    """Number of words of each cue."""


class _PhrasePlaces(NamedTuple):
    """The places at which a phrase is said, by video and time, in columns."""

    video: Rows
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    share: NDArray[np.float64]
    """Share of the words said there that the phrase makes up."""


def find_phrases(catalog: Catalog, phrases: Sequence[str], allowed: Ids | None = None) -> list[StreamHit]:
    """Utterances in which all phrases are said word for word, best first.

    The score is the share of the first phrase in the words of its cues: a cue that says only the phrase is best.
    """
    keys = _phrase_keys(catalog, phrases)
    rarest = min(range(len(phrases)), key=lambda i: keys[i].cues)
    found = {rarest: _find_places(_read_cues(catalog, [keys[rarest]], allowed), phrases[rarest])}
    if len(phrases) > 1:
        others = [i for i in range(len(phrases)) if i != rarest]
        lines = _read_cues(catalog, [keys[i] for i in others], np.unique(found[rarest].video))
        found |= {i: _find_places(lines, phrases[i]) for i in others}
    out = found[0]
    for i in range(1, len(phrases)):
        out = _join_places(out, found[i])
    columns = zip(*(column.tolist() for column in out), strict=True)
    once = {StreamHit(video, start, end, share, "strong") for video, start, end, share in columns}
    return sorted(once, key=lambda u: (-u.score, u.video, u.start, u.end))


def phrase_times(
    catalog: Catalog, phrases: Sequence[str], videos: Iterable[int]
) -> dict[int, list[tuple[float, float]]]:
    """Video → start and end of each cue in which any of the phrases is said."""
    out: dict[int, list[tuple[float, float]]] = {}
    if not phrases:
        return out
    lines = _read_cues(catalog, _phrase_keys(catalog, phrases), np.array(sorted(videos), np.int64))
    for phrase in phrases:
        found = _find_places(lines, phrase)
        for video, start, end in zip(found.video.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
            out.setdefault(video, []).append((start, end))
    return out


def _phrase_keys(catalog: Catalog, phrases: Sequence[str]) -> list[_PhraseKey]:
    counts: dict[str, int] = {}

    def count(word: str) -> int:
        if word not in counts:
            counts[word] = catalog.count_cues(word)
        return counts[word]

    out = []
    for phrase in phrases:
        each = list(dict.fromkeys(words(unicodedata.normalize("NFC", phrase))))
        longer = len(plain_words([phrase])[0].split()) > 1
        signed = next((word for word in each if UNSPACED_LETTER.search(word)), None)
        if signed is None:
            rarest = min(each, key=count)
            out.append(_PhraseKey(rarest, count(rarest), longer))
        else:  # the index takes a run of signs for one word, so it is sought without the index
            out.append(_PhraseKey(signed, 0, longer))
    return out


def _read_cues(catalog: Catalog, keys: Sequence[_PhraseKey], videos: Ids | None) -> _CueText:
    """Read the cues that may contain phrases with these keys, in order, as one text."""
    terms = list(dict.fromkeys(key.word for key in keys if not UNSPACED_LETTER.search(key.word)))
    ids = catalog.cue_ids_with_words(terms, videos)
    for sign in sorted({found[0] for key in keys if (found := UNSPACED_LETTER.search(key.word))}):
        ids |= catalog.cue_ids_with_letter(sign, videos)
    if any(key.longer for key in keys):
        ids.update([id - 1 for id in ids] + [id + 1 for id in ids])
    rows = catalog.cue_rows(ids, videos)
    id, video, start, end, texts = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    times = np.array(start, np.float64), np.array(end, np.float64)
    return _join_cues(np.array(id, np.int64), np.array(video, np.int64), *times, plain_words(texts))


def _join_cues(
    id: Rows, video: Rows, start: NDArray[np.float64], end: NDArray[np.float64], texts: Sequence[str]
) -> _CueText:
    follows = (
        (np.diff(id) == 1)
        & (np.diff(video) == 0)
        & (start[1:] >= start[:-1])
        & (start[1:] - end[:-1] <= MAX_CUE_GAP_SECONDS)
        if len(id)
        else np.zeros(0, bool)
    )
    parts = [
        (" " + text if text else "") + after
        for text, after in zip(texts, [*np.where(follows, "", " \n").tolist(), " \n"], strict=False)
    ]
    offsets = np.cumsum([0, *map(len, parts)])
    return _CueText(video, start, end, "".join(parts), offsets, np.array([t.count(" ") + 1 for t in texts], np.int64))


def _find_places(lines: _CueText, phrase: str) -> _PhrasePlaces:
    """Find the places at which a phrase is said, in one cue or across two consecutive cues."""
    sought = f" {plain_words([phrase])[0]} "
    found = []
    at = lines.text.find(sought) if sought.strip() else -1
    while at >= 0:
        found.append(at)
        at = lines.text.find(sought, at + 1)
    begun = np.array(found, np.int64)
    first = np.searchsorted(lines.offsets, begun, side="right") - 1
    last = np.searchsorted(lines.offsets, begun + len(sought) - 2, side="right") - 1
    new = np.diff(first, prepend=-1).astype(bool) | np.diff(last, prepend=-1).astype(bool)
    first, last = (each[new & (last - first <= 1)] for each in (first, last))
    total = lines.words[first] + np.where(last > first, lines.words[last], 0)
    end = np.maximum(lines.end[first], lines.end[last])
    return _PhrasePlaces(lines.video[first], lines.start[first], end, (sought.count(" ") - 1) / total)


def _join_places(ones: _PhrasePlaces, others: _PhrasePlaces) -> _PhrasePlaces:
    """Join each place of the first phrase with the nearest place of the other, if both fit into one utterance."""
    if not len(ones.video) or not len(others.video):
        return _PhrasePlaces(ones.video[:0], ones.start[:0], ones.end[:0], ones.share[:0])
    order = np.lexsort((others.start, others.video))
    video, start, end = others.video[order], others.start[order], others.end[order]
    # all videos on one time axis, one after another, so that one search finds all neighbours
    span = max(float(ones.start.max()), float(start.max())) + MAX_UTTERANCE_SECONDS + 1
    after = np.searchsorted(video * span + start, ones.video * span + ones.start)
    best = np.full(len(ones.video), -1)
    away = np.full(len(ones.video), np.inf)
    for step in (-2, -1, 0, 1):
        at = np.clip(after + step, 0, len(video) - 1)
        whole = np.maximum(end[at], ones.end) - np.minimum(start[at], ones.start)
        distance = np.abs(start[at] - ones.start)
        better = (video[at] == ones.video) & (whole <= MAX_UTTERANCE_SECONDS) & (distance < away)
        best, away = np.where(better, at, best), np.where(better, distance, away)
    kept = best >= 0
    at = best[kept]
    return _PhrasePlaces(
        ones.video[kept],
        np.minimum(ones.start[kept], start[at]),
        np.maximum(ones.end[kept], end[at]),
        ones.share[kept],
    )
