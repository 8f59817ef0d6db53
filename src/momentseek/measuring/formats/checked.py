"""Small readers' helpers: the shape of a record, and columns out of nested lists that are what they should be.

Whatever is missing, null or of the wrong type becomes one sentence that names the file and the record.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.judgements import Corpus
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading

SAME_DURATION = 1e-3
"""Seconds by which two statements of one video's duration may differ, as rounded ones do."""


def first_value(document: Document) -> Any:
    """The first value of a JSON object in outline, or None where the document is anything else."""
    value = document.outline if document.is_json else None
    return next(iter(value.values())) if isinstance(value, dict) and value else None


def has_keys(record: Any, *keys: str) -> bool:
    """Whether ``record`` is a JSON object with all ``keys``."""
    return isinstance(record, dict) and all(k in record for k in keys)


def is_number(value: Any) -> bool:
    """Whether ``value`` is a JSON number (booleans are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def mapping(document: Document) -> dict[str, Any]:
    """The document as one JSON object."""
    if not isinstance(document.json, dict):
        raise MomentseekError(f"{document.path}: expected one JSON object, found {_kind(document.json)}")
    return document.json


def records(document: Document) -> list[dict[str, Any]]:
    """The document as JSON objects: a list of them, or one per line."""
    found = document.records
    if set(map(type, found)) - {dict}:
        number, wrong = next((i, r) for i, r in enumerate(found, 1) if not isinstance(r, dict))
        raise MomentseekError(f"{document.path}: record {number:,} is {_short(wrong)}; expected a JSON object")
    return found


def column(records: Sequence[Any], key: str, document: Document) -> list[Any]:
    """``record[key]`` of every record, or one clear sentence about the first that lacks it."""
    try:
        return [record[key] for record in records]
    except (KeyError, TypeError, IndexError):
        number = next(i for i, r in enumerate(records, 1) if not has_keys(r, key))
        raise MomentseekError(f"{document.path}: record {number:,} has no {key!r}") from None


def optional(records: Sequence[dict[str, Any]], key: str) -> list[Any]:
    """``record[key]`` of every record, None where it is missing."""
    return [record.get(key) for record in records]


def strings(records: Sequence[Any], key: str, document: Document) -> list[str]:
    """A column of text; null and numbers are refused."""
    return check_types(column(records, key, document), {str}, document, key, "text")


def ids(records: Sequence[Any], key: str, document: Document) -> list[int | str]:
    """A column of query ids: whole numbers or text."""
    return check_types(column(records, key, document), {int, str}, document, key, "a whole number or text")


def lists(records: Sequence[Any], key: str, document: Document) -> list[list[Any]]:
    """A column of lists."""
    return check_types(column(records, key, document), {list}, document, key, "a list")


def texts(records: Sequence[dict[str, Any]], document: Document, *keys: str) -> list[str]:
    """Each record's text under the first of ``keys`` that any record has, and empty where there is none."""
    key = next((k for k in keys if any(k in r for r in records)), keys[-1])
    return check_types([r.get(key, "") for r in records], {str}, document, key, "text")


def check_types(
    values: list[Any],
    types: set[type],
    document: Document,
    key: str,
    wanted: str,
    positions: Sequence[int] | None = None,
) -> list[Any]:
    """``values``, after making sure that each is of one of ``types``; ``positions`` are their records, from 0."""
    if set(map(type, values)) - types:
        i, found = next((i, v) for i, v in enumerate(values) if type(v) not in types)
        wrong(document, f"{key!r} of record {(positions[i] if positions else i) + 1:,}", found, wanted)
    return values


def numbers(values: Sequence[Any], document: Document, what: str, positions: Sequence[int] | None = None) -> FloatArray:
    """One array of numbers; of those that stand in another order than in the file, ``positions`` are the records."""
    try:
        result = np.asarray(array("d", values))
        if not (document.may_hold_booleans and bool in set(map(type, values))):
            return result
    except (TypeError, OverflowError):
        pass
    i, found = next(((i, v) for i, v in enumerate(values) if not _fits(v)), (0, None))
    which = f"{what} {i + 1:,}" if positions is None else f"{what!r} of record {positions[i] + 1:,}"
    shown = _short("too large a number" if is_number(found) else found)
    raise MomentseekError(f"{document.path}: {which} is {shown}; expected a number")


def _fits(value: Any) -> bool:
    try:
        return is_number(value) and float(value) is not None
    except OverflowError:
        return False


def levels(values: Sequence[Any], document: Document, positions: Sequence[int] | None = None) -> FloatArray:
    """A column of relevance levels; their range is checked where judgements are built."""
    result = numbers(values, document, "relevance", positions)
    if not np.isfinite(result).all():
        wrong(document, "a relevance", float(result[~np.isfinite(result)][0]), "a whole number")
    return result


def matrix(rows: Sequence[Any], width: int, document: Document, what: str) -> FloatArray:
    """Rows of ``width`` numbers as one array; longer rows are refused, as are shorter ones and non-numbers."""
    if not (set(map(type, rows)) - {list, tuple} or set(map(len, rows)) - {width}):
        try:
            # Not np.fromiter, which takes null for NaN and text for a number.
            flat = list(chain.from_iterable(rows))
            if not (document.may_hold_booleans and bool in set(map(type, flat))):
                return np.asarray(array("d", flat)).reshape(-1, width)
        except (TypeError, OverflowError):
            pass
    for number, row in enumerate(rows, 1):
        good = isinstance(row, list | tuple) and len(row) == width
        if not good or not all(map(is_number, row)):
            raise MomentseekError(f"{document.path}: {what} {number:,} is {_short(row)}; expected {width} numbers")
    raise MomentseekError(f"{document.path}: a {what} holds a number too large to be a time")


def durations_of(pairs: Iterable[tuple[Any, Any]], document: Document) -> dict[str, float]:
    """Video → seconds; null means unknown. A video may stand several times, but has one duration."""
    known: dict[str, float] = {}
    for video, seconds in pairs:
        if seconds is None or known.get(video) == seconds:
            continue
        if not _fits(seconds) or not 0 < seconds < float("inf"):
            wrong(document, f"the duration of video {video}", seconds, "seconds, more than 0")
        before = known.setdefault(video, seconds)
        if abs(before - seconds) > SAME_DURATION:
            raise MomentseekError(
                f"{document.path}: video {video} lasts {before:g} s in one place and {seconds:g} s in another"
            )
    return known


def with_corpus(durations: dict[str, float], reading: Reading) -> Mapping[str, float]:
    """The file's own durations, and the given collection's where it has none."""
    return {**reading.corpus.durations, **durations} if reading.corpus else durations


def number_by_video(videos: Sequence[str]) -> list[str]:
    """Ids for queries that have none: the video and the query's place among its queries.

    >>> number_by_video(["a", "b", "a"])
    ['a:0', 'b:0', 'a:1']
    """
    seen: dict[str, int] = {}
    result = []
    for video in videos:
        position = seen.get(video, 0)
        seen[video] = position + 1
        result.append(f"{video}:{position}")
    return result


def flatten(groups: Iterable[Iterable[Any]]) -> list[Any]:
    """All groups' elements in one list."""
    return list(chain.from_iterable(groups))


def wrong(document: Document, what: str, found: Any, wanted: str) -> NoReturn:
    """Refuse a value in the readers' one form of words."""
    raise MomentseekError(f"{document.path}: {what} is {_short(found)}; expected {wanted}")


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else _short(value)


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "nested too deeply"
    return text if len(text) <= 60 else text[:57] + "…"


def collection(entries: Iterable[tuple[str, Any, int | None]], document: Document) -> Corpus:
    """The corpus of ``(video, seconds, index)``, the index None where the file has none."""
    listed = list(entries)
    durations = durations_of(((video, seconds) for video, seconds, _ in listed), document)
    names = by_index(((video, index) for video, _, index in listed if index is not None), document)
    return Corpus({video: float(seconds) for video, seconds in durations.items()}, names, str(document.path))


def by_index(pairs: Iterable[tuple[str, int]], document: Document) -> dict[int, str]:
    """Index → video, where each has its own."""
    names: dict[int, str] = {}
    for video, index in pairs:
        other = names.setdefault(index, video)
        if other != video:
            raise MomentseekError(
                f"{document.path}: videos {other} and {video} have the same index {index}; give each its own"
            )
    return names
