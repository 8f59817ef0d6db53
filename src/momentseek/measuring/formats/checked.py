"""Helpers of readers: check the shape of records, and extract columns of a known type from them.

A value that is missing, null or of the wrong type raises an error that names the file and the record.
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
"""Largest difference in seconds, due to rounding, between two durations given for one video."""


def first_value(document: Document) -> Any:
    """Return the first value of a JSON object's outline, or None if the document is anything else."""
    value = document.outline if document.is_json else None
    return next(iter(value.values())) if isinstance(value, dict) and value else None


def has_keys(record: Any, *keys: str) -> bool:
    """Whether ``record`` is a JSON object with all ``keys``."""
    return isinstance(record, dict) and all(k in record for k in keys)


def is_number(value: Any) -> bool:
    """Whether ``value`` is a JSON number (booleans are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def mapping(document: Document) -> dict[str, Any]:
    """Return the document as one JSON object."""
    if not isinstance(document.json, dict):
        raise MomentseekError(f"{document.path}: expected one JSON object, found {_kind(document.json)}")
    return document.json


def records(document: Document) -> list[dict[str, Any]]:
    """Return the document as a list of JSON objects: a JSON list, or one object per line."""
    found = document.records
    if set(map(type, found)) - {dict}:
        number, wrong = next((i, r) for i, r in enumerate(found, 1) if not isinstance(r, dict))
        raise MomentseekError(f"{document.path}: record {number:,} is {_short(wrong)}; expected a JSON object")
    return found


def column(records: Sequence[Any], key: str, document: Document) -> list[Any]:
    """Return ``record[key]`` of every record, or raise an error that names the first record without it."""
    try:
        return [record[key] for record in records]
    except (KeyError, TypeError, IndexError):
        number = next(i for i, r in enumerate(records, 1) if not has_keys(r, key))
        raise MomentseekError(f"{document.path}: record {number:,} has no {key!r}") from None


def optional(records: Sequence[dict[str, Any]], key: str) -> list[Any]:
    """Return ``record[key]`` of every record, None where it is missing."""
    return [record.get(key) for record in records]


def strings(records: Sequence[Any], key: str, document: Document) -> list[str]:
    """Return a column of texts; null and numbers raise an error."""
    return check_types(column(records, key, document), {str}, document, key, "text")


def ids(records: Sequence[Any], key: str, document: Document) -> list[int | str]:
    """Return a column of query ids: whole numbers or text."""
    return check_types(column(records, key, document), {int, str}, document, key, "a whole number or text")


def lists(records: Sequence[Any], key: str, document: Document) -> list[list[Any]]:
    """Return a column of lists."""
    return check_types(column(records, key, document), {list}, document, key, "a list")


def texts(records: Sequence[dict[str, Any]], document: Document, *keys: str) -> list[str]:
    """Return each record's text under the first of ``keys`` that any record has; empty where it is missing."""
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
    """Return ``values`` after checking that each has one of ``types``; ``positions`` are their records, from 0."""
    if set(map(type, values)) - types:
        i, found = next((i, v) for i, v in enumerate(values) if type(v) not in types)
        wrong(document, f"{key!r} of record {(positions[i] if positions else i) + 1:,}", found, wanted)
    return values


def numbers(values: Sequence[Any], document: Document, what: str, positions: Sequence[int] | None = None) -> FloatArray:
    """Return an array of numbers; ``positions`` are their records, if the order is not that of the file."""
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
    """Return a column of relevance levels; ``Judgements`` checks their range."""
    result = numbers(values, document, "relevance", positions)
    if not np.isfinite(result).all():
        wrong(document, "a relevance", float(result[~np.isfinite(result)][0]), "a whole number")
    return result


def matrix(rows: Sequence[Any], width: int, document: Document, what: str) -> FloatArray:
    """Return rows of exactly ``width`` numbers as one array; anything else raises an error."""
    if not (set(map(type, rows)) - {list, tuple} or set(map(len, rows)) - {width}):
        try:
            # Not np.fromiter, which accepts null as NaN and text as a number.
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
    """Return video → seconds; null means unknown. A video may be listed several times with the same duration."""
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
    """Return the file's own durations, completed from the given corpus."""
    return {**reading.corpus.durations, **durations} if reading.corpus else durations


def number_by_video(videos: Sequence[str]) -> list[str]:
    """Return ids for queries that have none: the video and the query's position among its queries.

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
    """Return the elements of all groups in one list."""
    return list(chain.from_iterable(groups))


def wrong(document: Document, what: str, found: Any, wanted: str) -> NoReturn:
    """Raise the error for a wrong value, in the form that all readers use."""
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
    """Build a corpus from ``(video, seconds, index)``; the index is None if the file has none."""
    listed = list(entries)
    durations = durations_of(((video, seconds) for video, seconds, _ in listed), document)
    names = by_index(((video, index) for video, _, index in listed if index is not None), document)
    return Corpus({video: float(seconds) for video, seconds in durations.items()}, names, str(document.path))


def by_index(pairs: Iterable[tuple[str, int]], document: Document) -> dict[int, str]:
    """Return index → video; two videos with the same index raise an error."""
    names: dict[int, str] = {}
    for video, index in pairs:
        other = names.setdefault(index, video)
        if other != video:
            raise MomentseekError(
                f"{document.path}: videos {other} and {video} have the same index {index}; give each its own"
            )
    return names
