"""Our own files by columns: those in which every line has the same keys and a query's lines stand together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.formats.document import Document
from momentseek.formats.record_lists import NumberColumn, RecordLists
from momentseek.moments.arrays import EncodedNames, FloatArray, IntArray

MOMENT_KEYS = ("query_id", "query", "video", "start", "end")


@dataclass(frozen=True)
class QuickRows:
    """The columns of such a file, and where the lines of each query are."""

    query_ids: tuple[str, ...]
    counts: IntArray
    video: EncodedNames
    start: FloatArray
    end: FloatArray
    queries: list[str] | None
    others: dict[str, FloatArray]
    """Columns of numbers besides these."""

    def groups(self) -> tuple[tuple[str, ...], list[int], EncodedNames, FloatArray, FloatArray]:
        """What every table of moments is made from."""
        return self.query_ids, self.counts.tolist(), self.video, self.start, self.end


def read_quickly(document: Document) -> QuickRows | None:
    """The rows of a file of our own, or None where it has any that only its slow reader understands."""
    lists = document.record_lists
    if lists is None or lists.rest != [0]:
        return None
    video, start, end = lists.texts("video"), lists.numbers("start"), lists.numbers("end")
    found = _queries(lists)
    others = {name: lists.numbers(name) for name in lists.columns if name not in MOMENT_KEYS}
    known = {name: values for name, values in others.items() if values is not None}
    if found is None or video is None or start is None or end is None or len(known) < len(others):
        return None
    query_ids, begins = found
    texts = lists.texts("query")
    if texts is None and "query" in lists.columns:
        return None
    queries = None if texts is None else [texts[int(row)] for row in begins]
    counts = np.diff(np.append(begins, len(video)))
    return QuickRows(query_ids, counts, video, start, end, queries, known)


def _queries(lists: RecordLists) -> tuple[tuple[str, ...], IntArray] | None:
    """The queries, and the first line of each; None if one's lines stand apart."""
    column = lists.columns.get("query_id")
    if isinstance(column, EncodedNames):
        codes = column.codes.astype(np.int64)
    elif isinstance(column, NumberColumn) and column.values.ndim == 1 and column.whole == column.values.size:
        codes = column.values.astype(np.int64)
    else:
        return None
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    if len(np.unique(codes[begins])) < len(begins):
        return None
    names = map(column.__getitem__, begins.tolist()) if isinstance(column, EncodedNames) else codes[begins].tolist()
    return tuple(map(str, names)), begins
