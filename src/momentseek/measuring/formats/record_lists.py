"""Extract columns directly from the bytes of a JSON file that consists mostly of lists of uniform records.

A system's predictions for a benchmark are some 300,000 small objects. Parsing them into dictionaries and taking these
apart again is most of the time of an evaluation. So a compiled scan (``native/json_records.c``) cuts such lists out of
the text and returns their columns; the rest of the text is parsed as usual. It only accepts machine-written files:
every record has the same names in the same order, and its values are texts, numbers or lists of numbers of one length.
For any other file it returns nothing, and the readers parse the whole file and report what is wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from momentseek.core.moments.arrays import EncodedNames, FloatArray, IntArray
from momentseek.core.native.kernels import kernels

MAX_COLUMNS = 24
TEXT, NUMBER = 1, 2


class _Column(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("width", ctypes.c_int64),
        ("key_at", ctypes.c_int64),
        ("key_size", ctypes.c_int64),
        ("whole", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("numbers", ctypes.POINTER(ctypes.c_double)),
        ("codes", ctypes.POINTER(ctypes.c_int32)),
        ("names", ctypes.c_int64),
        ("name_at", ctypes.POINTER(ctypes.c_int64)),
        ("name_size", ctypes.POINTER(ctypes.c_int64)),
        ("table", ctypes.c_void_p),
        ("slots", ctypes.c_int64),
        ("room", ctypes.c_int64),
        ("name_room", ctypes.c_int64),
    )


class _Cut(ctypes.Structure):
    _fields_ = (
        ("records", ctypes.c_int64),
        ("groups", ctypes.c_int64),
        ("counts", ctypes.POINTER(ctypes.c_int64)),
        ("columns", ctypes.c_int64),
        ("rest", ctypes.c_void_p),
        ("rest_size", ctypes.c_int64),
        ("group_room", ctypes.c_int64),
        ("rest_room", ctypes.c_int64),
        ("column", _Column * MAX_COLUMNS),
    )


@dataclass(frozen=True)
class NumberColumn:
    """Numbers of all records: ``(records,)``, or ``(records, width)`` if each record has a list."""

    values: FloatArray
    whole: int
    """How many of the numbers are written as whole numbers."""


@dataclass(frozen=True)
class RecordLists:
    """The lists of records of a JSON value as columns over all lists, and the value without them."""

    rest: Any
    """The value, with ``[i]`` in place of the i-th list of records."""
    counts: IntArray
    """Number of records of each list."""
    columns: dict[str, NumberColumn | EncodedNames]

    def sizes(self, lists: Sequence[Any]) -> list[int] | None:
        """Return the number of records of each of these values of ``rest``; None unless they are all of its lists."""
        if [some for some in lists if some != []] != [[i] for i in range(len(self.counts))]:
            return None  # one is not a list of records, or a name occurred twice and a parser kept the last
        sizes = iter(self.counts.tolist())
        return [0 if some == [] else next(sizes) for some in lists]

    def numbers(self, name: str, width: int | None = None) -> FloatArray | None:
        """Return a column of numbers, or of lists of ``width`` numbers; None if there is no such column."""
        column = self.columns.get(name)
        if not isinstance(column, NumberColumn) or column.values.shape[1:] != (() if width is None else (width,)):
            return None
        return column.values

    def texts(self, name: str) -> EncodedNames | None:
        """Return a column of texts; None if there is no such column."""
        column = self.columns.get(name)
        return column if isinstance(column, EncodedNames) else None

    def outline(self) -> Any:
        """Return the whole value, but with a single record in place of every list of records.

        It is the first record of the file, because all have the same names. In other lists, only the first element is
        filled in.
        """
        return _fill(self.rest, [{name: _first(column) for name, column in self.columns.items()}])


def column_objects(column: NumberColumn | EncodedNames) -> list[Any] | None:
    """Return a column's values as a JSON parser does; None if some of its numbers are whole and others are not."""
    if isinstance(column, EncodedNames):
        return list(column)
    if column.whole not in (0, column.values.size):
        return None
    found: list[Any] = (column.values.astype(np.int64) if column.whole else column.values).tolist()
    return found


def agreed_durations(videos: EncodedNames, seconds: FloatArray) -> dict[str, float] | None:
    """Return video → seconds from each moment's duration; None if a video has several durations or one ≤ 0.

    >>> agreed_durations(EncodedNames(("b", "a"), np.array([0, 1, 0], np.int32)), np.array([9.0, 5.0, 9.0]))
    {'b': 9.0, 'a': 5.0}
    """
    first = np.empty(len(videos.vocabulary))
    first[videos.codes[::-1]] = seconds[::-1]
    if not (seconds > 0).all() or (first[videos.codes] != seconds).any():
        return None
    return dict(zip(videos.vocabulary, first.tolist(), strict=True))


def _first(column: NumberColumn | EncodedNames) -> Any:
    if isinstance(column, EncodedNames):
        return column[0]
    value = column.values[0].tolist()
    return int(value) if column.whole == column.values.size and isinstance(value, float) else value


def _fill(value: Any, records: list[dict[str, Any]]) -> Any:
    if isinstance(value, dict):
        return {name: _fill(some, records) for name, some in value.items()}
    if not isinstance(value, list) or not value:
        return value
    if len(value) == 1 and type(value[0]) is int:
        return records
    return [_fill(value[0], records), *value[1:]]


def cut_records(data: bytes) -> RecordLists | None:
    """Return the lists of records of a JSON text; None if it has another form or the kernels are not compiled.

    >>> lists = cut_records(b'{"q": [{"video": "b", "span": [1, 2.5]}, {"video": "a", "span": [0, 1]}], "r": []}')
    >>> lists and (lists.rest, lists.counts.tolist(), list(lists.texts("video")), lists.numbers("span", 2).tolist())
    ({'q': [0], 'r': []}, [2], ['b', 'a'], [[1.0, 2.5], [0.0, 1.0]])
    """
    compiled = kernels()
    if compiled is None:
        return None
    cut = compiled.json_cut_records
    cut.restype, cut.argtypes = ctypes.POINTER(_Cut), (ctypes.c_char_p, ctypes.c_int64)
    free = compiled.json_cut_free
    free.restype, free.argtypes = None, (ctypes.POINTER(_Cut),)
    found = cut(data, len(data))
    if not found:
        return None
    try:
        return _gather(data, found.contents)
    except ValueError:  # not UTF-8, or the rest is not JSON: parsing the whole file will report where
        return None
    finally:
        free(found)


def _gather(data: bytes, cut: _Cut) -> RecordLists | None:
    rest = orjson.loads(ctypes.string_at(cut.rest, cut.rest_size))
    columns: dict[str, NumberColumn | EncodedNames] = {}
    for column in cut.column[: cut.columns]:
        name = _text(data[column.key_at : column.key_at + column.key_size])
        if name in columns:
            return None  # parsers keep the last of a repeated name
        if column.kind == TEXT:
            names = _names(data, column)
            if names is None:
                return None
            columns[name] = EncodedNames(names, _copy(column.codes, column.used))
        else:
            values = _copy(column.numbers, column.used)
            whole = int(column.whole)
            columns[name] = NumberColumn(values if column.kind == NUMBER else values.reshape(-1, column.width), whole)
    return RecordLists(rest, _copy(cut.counts, cut.groups), columns)


def _names(data: bytes, column: _Column) -> tuple[str, ...] | None:
    """Return the distinct texts; None if two different spellings (escapes) are the same text."""
    positions = zip(
        _copy(column.name_at, column.names).tolist(), _copy(column.name_size, column.names).tolist(), strict=True
    )
    names = tuple(_text(data[at : at + size]) for at, size in positions)
    return names if len(set(names)) == len(names) else None


def _text(raw: bytes) -> str:
    return str(orjson.loads(b'"%b"' % raw)) if b"\\" in raw else raw.decode()


def _copy(pointer: Any, size: int) -> Any:
    return np.ctypeslib.as_array(pointer, (size,)).copy()
