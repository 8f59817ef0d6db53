"""Small readers' helpers: the shape of a record, missing keys, and flat columns out of nested lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.moments.arrays import FloatArray


def first_record(document: Document) -> Any:
    """The first element of a JSON list or JSON Lines file, or the JSON value itself."""
    if not document.is_json:
        return None
    value = document.json
    return value[0] if isinstance(value, list) and value else value


def has_keys(record: Any, *keys: str) -> bool:
    """Whether ``record`` is a JSON object with all ``keys``."""
    return isinstance(record, dict) and all(k in record for k in keys)


def column(records: Sequence[Any], key: str, document: Document) -> list[Any]:
    """``record[key]`` of every record, or one clear sentence about the first that lacks it."""
    try:
        return [record[key] for record in records]
    except (KeyError, TypeError, IndexError):
        number = next(i for i, r in enumerate(records, 1) if not has_keys(r, key))
        raise MomentseekError(f"{document.path}: record {number:,} has no {key!r}") from None


def matrix(rows: Sequence[Sequence[float]], width: int, document: Document, what: str) -> FloatArray:
    """Rows of ``width`` numbers as one array; longer rows are refused, as are shorter ones and non-numbers."""
    try:
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64)
        if flat.size == width * len(rows) and all(len(r) == width for r in rows):
            return flat.reshape(-1, width)
    except (TypeError, ValueError):
        pass
    for number, row in enumerate(rows, 1):
        good = isinstance(row, list | tuple) and len(row) == width
        if not good or not all(isinstance(x, int | float) for x in row):
            raise MomentseekError(f"{document.path}: {what} {number:,} is {_short(row)}; expected {width} numbers")
    raise MomentseekError(f"{document.path}: {what} rows cannot be read as {width} numbers each")


def write_id(query_id: str) -> int | str:
    """A query id as the community's files hold it: a number where it is one.

    >>> write_id("90200"), write_id("3MSZA:2"), write_id("007")
    (90200, '3MSZA:2', '007')
    """
    return int(query_id) if query_id.isascii() and query_id.isdigit() and str(int(query_id)) == query_id else query_id


def flatten(groups: Iterable[Iterable[Any]]) -> list[Any]:
    """All groups' elements in one list."""
    return list(chain.from_iterable(groups))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
