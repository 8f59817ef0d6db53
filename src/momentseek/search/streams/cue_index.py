"""All that is asked of the index of cues. ``videos`` restricts an answer within the database; None means all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from momentseek.library.catalog import Catalog
from momentseek.search.streams.sights import Ids
from momentseek.search.words import any_of


def total(catalog: Catalog) -> int:
    """How many cues there are."""
    return int(catalog.rows("SELECT count(*) FROM cues")[0][0])


def count(catalog: Catalog, word: str) -> int:
    """How many cues have a word, stemmed."""
    return int(catalog.rows("SELECT count(*) FROM cue_words WHERE cue_words MATCH ?", (any_of([word]),))[0][0])


def best(catalog: Catalog, terms: Sequence[str], videos: Ids | None, limit: int) -> list[Any]:
    """``(video, start, end, text, language, BM25)`` of the cues with any of the words, stemmed, best first."""
    some, given = _some(videos)
    sql = f"""SELECT cues.video, cues.start, cues.end, cues.text, cues.language, -bm25(cue_words) FROM cue_words
              JOIN cues ON cues.id = cue_words.rowid WHERE cue_words MATCH ? {some}
              ORDER BY bm25(cue_words), cues.id LIMIT ?"""
    return catalog.rows(sql, (any_of(terms), *given, limit))


def with_words(catalog: Catalog, terms: Sequence[str], videos: Ids | None) -> set[int]:
    """Ids of all cues with any of the words, stemmed."""
    some, given = _some(videos)
    join = "JOIN cues ON cues.id = cue_words.rowid" if some else ""
    sql = f"SELECT cue_words.rowid FROM cue_words {join} WHERE cue_words MATCH ? {some}"
    return {row[0] for row in catalog.rows(sql, (any_of(terms), *given))} if terms else set()


def with_letter(catalog: Catalog, letter: str, videos: Ids | None) -> set[int]:
    """Ids of all cues with a letter; this reads all of them."""
    some, given = _some(videos)
    return {row[0] for row in catalog.rows(f"SELECT id FROM cues WHERE instr(text, ?) {some}", (letter, *given))}


def lines(catalog: Catalog, ids: Iterable[int], videos: Ids | None) -> list[Any]:
    """``(id, video, start, end, text)`` of some cues, by video and in their order."""
    some, given = _some(videos)
    sql = f"""SELECT id, video, start, end, text FROM cues
              WHERE id IN (SELECT value FROM json_each(?)) {some} ORDER BY video, id"""
    return catalog.rows(sql, (json.dumps(sorted(ids)), *given))


def _some(videos: Ids | None) -> tuple[str, tuple[str, ...]]:
    if videos is None:
        return "", ()
    return "AND cues.video IN (SELECT value FROM json_each(?))", (json.dumps(videos.tolist()),)
