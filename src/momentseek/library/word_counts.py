"""How often words occur in a library's texts, and the best texts by BM25.

BM25 weighs a word by how rare it is and a text by how long it is compared with the others. SQLite's own ``bm25()``
counts in a single database. A library that is part of a larger one must count over all parts; otherwise a word would be
rare in one part and common in another. So each part returns its :class:`WordCounts`, and scores its texts by their sum.
How often a text has a word is computed from SQLite's score: ``s = idf · 2.2 f / (f + c)`` with ``c = 1.2 (0.25 + 0.75
length / mean)``, and all but ``f`` is known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.spelling import spellings
from momentseek.library.words import match_any, match_form

K1, B = 1.2, 0.75
"""BM25's constants in SQLite."""
LEAST_RARITY = 1e-6
"""Weight of a word that more than half of the texts contain."""


@dataclass(frozen=True)
class WordIndex:
    """A full-text index of the catalog: its table, and the table and column that say which video a text belongs to."""

    table: str
    texts: str
    columns: str = "start, end, text, start"
    """SQL for a text's start and end in seconds, the text, and the time of the frame to show."""
    video: str = "video"


CUES = WordIndex("speech_words", "cues")
NAMES = WordIndex("name_words", "videos", "0.0, 0.0, name, 0.0", video="id")
LINES = WordIndex("ocr_words", "cues", "start, end, text, frame")
SPELLINGS = WordIndex("ocr_spellings", "cues", "start, end, text, frame")
CAPTIONS = WordIndex("captions_words", "cues", "start, end, text, (start + end) / 2")


@dataclass(frozen=True)
class WordCounts:
    """How many texts there are, how many words they have together, and how many of them hold each of some words."""

    texts: int = 0
    words: int = 0
    holding: tuple[tuple[str, int], ...] = ()

    @classmethod
    def total(cls, parts: Iterable[WordCounts]) -> WordCounts:
        """The counts of several libraries together.

        >>> WordCounts.total([WordCounts(3, 9, (("dog", 1),)), WordCounts(2, 8, (("dog", 2),))])
        WordCounts(texts=5, words=17, holding=(('dog', 3),))
        """
        given = list(parts)
        holding: dict[str, int] = {}
        for part in given:
            for word, count in part.holding:
                holding[word] = holding.get(word, 0) + count
        return cls(sum(p.texts for p in given), sum(p.words for p in given), tuple(holding.items()))

    def of(self, terms: Sequence[str]) -> list[int]:
        """The number of texts that hold each of some words."""
        known = dict(self.holding)
        return [known.get(term, 0) for term in terms]

    @property
    def mean_length(self) -> float:
        """Average number of words in a text."""
        return self.words / self.texts if self.texts else 1.0

    def rarity(self, holding: int) -> float:
        """BM25's weight of a word by the number of texts that hold it."""
        weight = math.log((self.texts - holding + 0.5) / (holding + 0.5))
        return weight if weight > 0 else LEAST_RARITY


class RankedTexts(NamedTuple):
    """The best texts for some words, in columns, best first."""

    id: NDArray[np.int64]
    video: NDArray[np.int64]
    bm25: NDArray[np.float64]

    def first(self, limit: int) -> RankedTexts:
        """The best ``limit`` of them; ties by video, then by the text's number."""
        some = keep_best(self.bm25, limit)
        chosen = some[np.lexsort((self.id[some], self.video[some], -self.bm25[some]))[:limit]]
        return RankedTexts(self.id[chosen], self.video[chosen], self.bm25[chosen])


def keep_best(values: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Places of the ``limit`` highest values, and of all that are as high as the last of them; in no order.

    >>> sorted(keep_best(np.array([3.0, 1.0, 2.0, 2.0]), 2).tolist())
    [0, 2, 3]
    """
    if len(values) <= limit:
        return np.arange(len(values))
    return np.flatnonzero(values >= np.partition(values, len(values) - limit)[len(values) - limit])


def count_words(catalog: Catalog, index: WordIndex, terms: Sequence[str]) -> WordCounts:
    """The counts of an index for some words."""
    texts, words = _totals(catalog, index)
    if not texts:
        return WordCounts(0, 0, tuple((term, 0) for term in terms))
    sql = f"SELECT count(*) FROM {index.table} WHERE {index.table} MATCH ?"
    return WordCounts(texts, words, tuple((term, catalog.rows(sql, (match_any([term]),))[0][0]) for term in terms))


def rank_texts(
    catalog: Catalog,
    index: WordIndex,
    terms: Sequence[str],
    videos: NDArray[np.int64] | None,
    limit: int,
    everywhere: WordCounts,
) -> RankedTexts:
    """The ``limit`` texts that match any of the words best, by the counts of the whole library.

    ``videos`` restricts the answer to these ids, None stands for all.
    """
    none = RankedTexts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    if not terms:
        return none
    if _totals(catalog, index) == (everywhere.texts, everywhere.words) and not any(
        len(spellings(term)) > 1 and len(_count_forms(catalog, index, term).holding) > 1 for term in terms
    ):
        return _rank_all(catalog, index, terms, videos, limit)  # all texts are here, each word in one spelling
    forms = [_count_forms(catalog, index, term) for term in terms]
    found = [
        _Frequencies.total([_frequencies(catalog, index, form, videos, some) for form, _ in some.holding])
        for some in forms
    ]
    ids = np.concatenate([each.id for each in found])
    if not len(ids):
        return none
    ids, first = np.unique(ids, return_index=True)
    video = np.concatenate([each.video for each in found])[first]
    length = np.concatenate([each.length for each in found])[first]
    score = np.zeros(len(ids))
    damp = K1 * (1 - B + B * length / everywhere.mean_length)
    for each, holding in zip(found, everywhere.of(terms), strict=True):
        times = np.zeros(len(ids))
        times[np.searchsorted(ids, each.id)] = each.times
        score += everywhere.rarity(holding) * ((times * (K1 + 1.0)) / (times + damp))
    return RankedTexts(ids, video, score).first(limit)


def _rank_all(
    catalog: Catalog, index: WordIndex, terms: Sequence[str], videos: NDArray[np.int64] | None, limit: int
) -> RankedTexts:
    """The best texts of a library by SQLite's own BM25; without a restriction, only these are looked up."""
    if videos is None:
        rows = catalog.rows(
            f"""WITH found AS MATERIALIZED (
                    SELECT rowid AS number, bm25({index.table}) AS bm25 FROM {index.table} WHERE {index.table} MATCH ?1
                )
                SELECT t.id, t.{index.video}, -bm25 FROM found JOIN {index.texts} AS t ON t.id = number
                WHERE bm25 <= coalesce((SELECT bm25 FROM found ORDER BY bm25 LIMIT 1 OFFSET ?2 - 1), 0)
                ORDER BY bm25, t.{index.video}, t.id LIMIT ?2""",
            (match_any(terms), limit),
        )
    else:
        some, ids = _restriction(index, videos)
        rows = catalog.rows(
            f"""SELECT t.id, t.{index.video}, -bm25({index.table}) FROM {index.table}
                JOIN {index.texts} AS t ON t.id = {index.table}.rowid WHERE {index.table} MATCH ? {some}
                ORDER BY bm25({index.table}), t.{index.video}, t.id LIMIT ?""",
            (match_any(terms), *ids, limit),
        )
    id, video, score = zip(*rows, strict=True) if rows else ((), (), ())
    return RankedTexts(np.array(id, np.int64), np.array(video, np.int64), np.array(score, np.float64))


def _restriction(index: WordIndex, videos: NDArray[np.int64] | None) -> tuple[str, tuple[str, ...]]:
    """SQL that restricts texts ``t`` to those of some videos, and its values."""
    if videos is None:
        return "", ()
    return f"AND t.{index.video} IN (SELECT value FROM json_each(?))", (json.dumps(videos.tolist()),)


def read_texts(catalog: Catalog, index: WordIndex, ids: NDArray[np.int64]) -> list[tuple[float, float, str, float]]:
    """Start, end, text and the time of the frame to show of some texts, in the order of ``ids``."""
    if not len(ids):
        return []
    sql = f"SELECT id, {index.columns} FROM {index.texts} WHERE id IN (SELECT value FROM json_each(?))"
    found = {row[0]: row[1:] for row in catalog.rows(sql, (json.dumps(ids.tolist()),))}
    return [found[id] for id in ids.tolist()]


class _Frequencies(NamedTuple):
    """The texts that hold a word: how often, and how many words each has."""

    id: NDArray[np.int64]
    video: NDArray[np.int64]
    times: NDArray[np.float64]
    length: NDArray[np.float64]

    @classmethod
    def total(cls, forms: Sequence[_Frequencies]) -> _Frequencies:
        """Those of a word, given those of each of its spellings."""
        if not forms:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        ids, video, times, length = (np.concatenate(column) for column in zip(*forms, strict=True))
        each, first, place = np.unique(ids, return_index=True, return_inverse=True)
        return cls(each, video[first], np.bincount(place, times, len(each)).astype(np.float64), length[first])


def _count_forms(catalog: Catalog, index: WordIndex, term: str) -> WordCounts:
    """The counts of an index for those spellings of a word that it has."""
    texts, words = _totals(catalog, index)
    sql = f"SELECT count(*) FROM {index.table} WHERE {index.table} MATCH ?"
    counted = [(form, catalog.rows(sql, (match_form(form),))[0][0]) for form in spellings(term)]
    return WordCounts(texts, words, tuple((form, number) for form, number in counted if number))


def _frequencies(
    catalog: Catalog, index: WordIndex, term: str, videos: NDArray[np.int64] | None, here: WordCounts
) -> _Frequencies:
    some, ids = _restriction(index, videos)
    rows = catalog.rows(
        f"""SELECT t.id, t.{index.video}, -bm25({index.table}), d.sz FROM {index.table}
            JOIN {index.texts} AS t ON t.id = {index.table}.rowid
            JOIN {index.table}_docsize AS d ON d.id = {index.table}.rowid
            WHERE {index.table} MATCH ? {some}""",
        (match_form(term), *ids),
    )
    id, video, score, sizes = zip(*rows, strict=True) if rows else ((), (), (), ())
    length = _lengths(sizes)
    share = np.array(score, np.float64) / here.rarity(here.of([term])[0])
    damp = K1 * (1 - B + B * length / here.mean_length)
    times = np.rint(share * damp / (K1 + 1.0 - share))
    return _Frequencies(np.array(id, np.int64), np.array(video, np.int64), times, length)


def _lengths(sizes: Sequence[bytes]) -> NDArray[np.float64]:
    """Numbers of words of texts, as the index keeps them; most are a byte each."""
    joined = b"".join(sizes)
    if len(joined) == len(sizes):
        return np.frombuffer(joined, np.uint8).astype(np.float64)
    return np.array([_numbers(size)[0] for size in sizes], np.float64)


def _totals(catalog: Catalog, index: WordIndex) -> tuple[int, int]:
    """Number of texts of an index and of their words, from where ``bm25()`` itself takes them."""
    rows = catalog.rows(f"SELECT block FROM {index.table}_data WHERE id = 1")
    numbers = _numbers(rows[0][0]) if rows else []
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (0, 0)


def _numbers(data: bytes) -> list[int]:
    """Decode SQLite's variable-length integers: seven bits per byte, highest first; the eighth bit means "continued".

    >>> _numbers(bytes([5, 0x81, 0x00]))
    [5, 128]
    """
    out, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            out.append(value)
            value = 0
    return out
