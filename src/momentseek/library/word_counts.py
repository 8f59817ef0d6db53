"""How often words occur in a library's texts, and the best texts by BM25.

BM25 weighs a word by how rare it is and a text by how long it is compared with the others. SQLite's own ``bm25()``
counts in a single database, and looks up the length of each text by itself. A library that is part of a larger one must
count over all parts; otherwise a word would be rare in one part and common in another. So each part returns its
:class:`WordCounts`, and scores its texts by their sum, in arrays and to the same bits as SQLite. Which texts have a
word, how often, and how long they are is read at once for all of its texts, and cached until the library changes.
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
from momentseek.library.spelling import sign_of, spellings
from momentseek.library.words import index_tokens, match_form

K1, B = 1.2, 0.75
"""BM25's constants in SQLite."""
LEAST_RARITY = 1e-6
"""Weight of a word that more than half of the texts contain."""
MAX_CACHED_TEXTS = 2_000_000
"""Largest number of texts in the cached lists of words, of each index; a text takes 24 bytes."""
MAX_LOOKUP_SHARE = 0.2
"""Once the lengths of this share of all texts were looked up one by one, all are read, which takes as long."""


@dataclass(frozen=True)
class WordIndex:
    """A full-text index of the catalog: its table, and the table and column that say which video a text belongs to."""

    table: str
    texts: str
    columns: str = "start, end, text, start"
    """SQL for a text's start and end in seconds, the text, and the time of the frame to show."""
    video: str = "video"
    stemmed: bool = True
    """Whether it stems words."""


CUES = WordIndex("speech_words", "cues")
NAMES = WordIndex("name_words", "videos", "0.0, 0.0, name, 0.0", video="id")
LINES = WordIndex("ocr_words", "cues", "start, end, text, frame")
SPELLINGS = WordIndex("ocr_spellings", "cues", "start, end, text, frame", stemmed=False)
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


class TextRows(NamedTuple):
    """Texts that hold some words, best first: cues, lines on screen, captions, or names of videos.

    All numbers are in one table, to be sent quickly.
    """

    table: NDArray[np.float64]
    """(7, n): id of the text, video, BM25, start, end, time of the frame to show, whether it was transcribed."""
    holds: NDArray[np.bool_]
    """(n, words): which of the words each text holds, in any spelling."""
    texts: list[str]

    @classmethod
    def join(cls, parts: Sequence[TextRows], limit: int) -> TextRows:
        """The ``limit`` texts of all parts that match best, best first; ties by video and id."""
        if len(parts) == 1:
            return parts[0]
        table = np.concatenate([part.table for part in parts], axis=1)
        order = np.lexsort((table[0], table[1], -table[2]))[:limit]
        texts = [text for part in parts for text in part.texts]
        holds = np.concatenate([part.holds for part in parts])
        return cls(table[:, order], holds[order], [texts[at] for at in order.tolist()])

    @property
    def videos(self) -> list[int]:
        """The video of each text."""
        found: list[int] = self.table[1].astype(np.int64).tolist()
        return found

    def with_others(self, others: TextRows) -> TextRows:
        """These texts, then the others that are not among them; which words those hold is not known."""
        known = set(zip(*self.table[:2].tolist(), strict=True))
        new = [at for at, one in enumerate(zip(*others.table[:2].tolist(), strict=True)) if one not in known]
        holds = np.pad(self.holds, ((0, len(new)), (0, 0)))
        texts = [*self.texts, *(others.texts[at] for at in new)]
        return TextRows(np.concatenate([self.table, others.table[:, new]], axis=1), holds, texts)


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
    return WordCounts(texts, words, tuple((term, len(_texts_with(catalog, index, term).id)) for term in terms))


def rank_texts(
    catalog: Catalog,
    index: WordIndex,
    terms: Sequence[str],
    videos: NDArray[np.int64] | None,
    limit: int,
    everywhere: WordCounts,
    asked: Sequence[str] = (),
) -> TextRows:
    """The ``limit`` texts that match any of the words best, by the counts of the whole library.

    ``videos`` restricts the answer to these ids, None stands for all. ``asked`` are the words of which the answer says
    which texts hold them. Whether a text was transcribed is not known here.
    """
    found = [_texts_with(catalog, index, term) for term in terms]
    each = np.sort(np.concatenate([np.zeros(0, np.int64), *(one.id for one in found)]))
    ids = each[np.diff(each, prepend=-1) > 0]  # faster than np.unique
    score = np.zeros(len(ids))
    for one, holding in zip(found, everywhere.of(terms), strict=True):
        damp = K1 * (1 - B + B * one.length / everywhere.mean_length)
        weighted = everywhere.rarity(holding) * ((one.times * (K1 + 1.0)) / (one.times + damp))
        score[np.searchsorted(ids, one.id)] += weighted
    best = keep_best(score, limit) if videos is None else np.arange(len(ids))
    ids, score = ids[best], score[best]
    some = "" if videos is None else f"AND {index.video} IN (SELECT value FROM json_each(?))"
    values = [json.dumps(each.tolist()) for each in (ids, videos) if each is not None]
    sql = f"""SELECT id, {index.video}, {index.columns} FROM {index.texts}
              WHERE id IN (SELECT value FROM json_each(?)) {some} ORDER BY id"""
    rows = catalog.rows(sql, values) if len(ids) else []
    id, video, start, end, texts, at = zip(*rows, strict=True) if rows else ((),) * 6
    bm25 = score[np.searchsorted(ids, np.array(id, np.int64))]
    columns = (id, video, bm25, start, end, at, np.zeros(len(rows)))
    table = np.stack([np.asarray(column, np.float64) for column in columns])
    order = np.lexsort((table[0], table[1], -table[2]))[:limit]
    best_texts = [texts[place] for place in order.tolist()]
    return TextRows(table[:, order], _held_words(catalog, index, asked, table[0, order], best_texts), best_texts)


def _held_words(
    catalog: Catalog, index: WordIndex, terms: Sequence[str], ids: NDArray[np.float64], texts: Sequence[str]
) -> NDArray[np.bool_]:
    """``(texts, words)``: whether a text holds a word, or the sign that stands for it."""
    out = np.zeros((len(texts), len(terms)), bool)
    for column, term in enumerate(terms if texts else ()):
        listed = np.append(_texts_with(catalog, index, term).id, -1)
        out[:, column] = listed[np.searchsorted(listed[:-1], ids)] == ids
        if (sign := sign_of(term)) is not None:
            out[:, column] |= [sign in text for text in texts]
    return out


class _Frequencies(NamedTuple):
    """The texts that hold a word, by rising ids: how often, and how many words each has."""

    id: NDArray[np.int64]
    times: NDArray[np.float64]
    length: NDArray[np.float64]


def _texts_with(catalog: Catalog, index: WordIndex, term: str) -> _Frequencies:
    """The texts that hold a word in any of its spellings."""
    forms = [_texts_with_form(catalog, index, form) for form in spellings(term)]
    if len(forms) == 1:
        return forms[0]
    ids, times, length = (np.concatenate(column) for column in zip(*forms, strict=True))
    each, first, place = np.unique(ids, return_index=True, return_inverse=True)
    return _Frequencies(each, np.bincount(place, times, len(each)).astype(np.float64), length[first])


def _texts_with_form(catalog: Catalog, index: WordIndex, form: str) -> _Frequencies:
    """The texts that hold a word in one spelling; cached until the library changes."""
    known: dict[str, _Frequencies] = catalog.read_cache(index.table)
    found = known.get(form)
    if found is None:
        found = _read_form(catalog, index, form)
        size = catalog.read_cache(f"{index.table} size")
        size["texts"] = size.get("texts", 0) + 1 + len(found.id)
        if size["texts"] > MAX_CACHED_TEXTS:
            known.clear()  # other threads may be adding to it
            size["texts"] = 1 + len(found.id)
        known[form] = found
    return found


def _read_form(catalog: Catalog, index: WordIndex, form: str) -> _Frequencies:
    """Read the texts that hold a word in one spelling.

    SQLite sends all numbers as one text, which takes a fifth of the time of as many rows.
    """
    tokens = index_tokens(form) if index.stemmed else ()
    if len(tokens) != 1 or not catalog.list_instances(index.table):
        return _read_phrase(catalog, index, form)
    sql = f"SELECT group_concat(doc) FROM temp.{index.table}_instances WHERE term = ?"
    listed = catalog.rows(sql, tokens)[0][0] or ""
    ids, times = np.unique(np.fromstring(listed, np.int64, sep=","), return_counts=True)
    lengths = _lengths_of(catalog, index, ids)
    if lengths is None:
        return _read_phrase(catalog, index, form)
    return _Frequencies(ids, times.astype(np.float64), lengths)


def _lengths_of(catalog: Catalog, index: WordIndex, ids: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Numbers of words of some texts, by rising ids; None if the index is damaged."""
    cache = catalog.read_cache(f"{index.table} lengths")
    cache["looked up"] = cache.get("looked up", 0) + len(ids)
    if "all" not in cache and cache["looked up"] <= MAX_LOOKUP_SHARE * _totals(catalog, index)[0]:
        sql = f"SELECT group_concat(hex(sz), '') FROM json_each(?) JOIN {index.table}_docsize AS d ON d.id = value"
        lengths = _lengths(bytes.fromhex(catalog.rows(sql, (json.dumps(ids.tolist()),))[0][0] or ""))
        return lengths if len(lengths) == len(ids) else None
    if "all" not in cache:
        ordered = f"SELECT id, sz FROM {index.table}_docsize ORDER BY id"
        sql = f"SELECT group_concat(id), group_concat(hex(sz), '') FROM ({ordered})"
        texts, sizes = catalog.rows(sql)[0]
        cache["all"] = np.fromstring(texts or "", np.int64, sep=","), _lengths(bytes.fromhex(sizes or ""))
    texts, lengths = cache["all"]
    near = np.searchsorted(texts, ids)
    if len(texts) != len(lengths) or (near == len(texts)).any() or (texts[near] != ids).any():
        return None
    found: NDArray[np.float64] = lengths[near]
    return found


def _read_phrase(catalog: Catalog, index: WordIndex, form: str) -> _Frequencies:
    """Read the texts that hold words in a row.

    How often is computed from SQLite's score: ``s = idf · 2.2 f / (f + c)`` with ``c = 1.2 (0.25 + 0.75 length /
    mean)``, and all but ``f`` is known.
    """
    rows = catalog.rows(
        f"""SELECT f.rowid, -bm25({index.table}), d.sz FROM {index.table} AS f
            JOIN {index.table}_docsize AS d ON d.id = f.rowid WHERE {index.table} MATCH ? ORDER BY f.rowid""",
        (match_form(form),),
    )
    id, score, sizes = zip(*rows, strict=True) if rows else ((), (), ())
    here = WordCounts(*_totals(catalog, index))
    length = _lengths(b"".join(sizes))
    share = np.array(score, np.float64) / here.rarity(len(rows))
    damp = K1 * (1 - B + B * length / here.mean_length)
    return _Frequencies(np.array(id, np.int64), np.rint(share * damp / (K1 + 1.0 - share)), length)


def _lengths(sizes: bytes) -> NDArray[np.float64]:
    """Numbers of words of texts, as an index stores them one after another; most are a byte each."""
    joined = np.frombuffer(sizes, np.uint8)
    return joined.astype(np.float64) if (joined < 0x80).all() else np.array(_numbers(sizes), np.float64)


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
