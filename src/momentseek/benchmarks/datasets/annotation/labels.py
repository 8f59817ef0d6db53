"""Read and write CSV files of annotators' labels and of judged pairs.

Labels have the columns ``pair_id, worker, relevance``, one row per judgement, like TVR-Ranking's raw annotations;
levels are whole numbers from 0 (irrelevant) to 4 (perfect match). Judged pairs are the result of a consensus or an
exam. People open both in spreadsheets, so names that look like formulas are escaped.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, IntArray, encode_names, offsets_of, stable_order
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.core.reports import count, csv_text, plain_cell
from momentseek.measuring.formats.document import Document, header_of, open_document, rows_of

LEVEL_COUNT = MAX_RELEVANCE + 1
LABEL_COLUMNS = ("pair_id", "worker", "relevance")
MODEL_WORKER = "model:"
"""Prefix of the name of a worker that is a language model."""


@dataclass(frozen=True, eq=False)
class AnnotatorLabels:
    """Annotators' labels grouped by pair: pair ``i`` has rows ``offsets[i]:offsets[i + 1]`` of the other columns.

    Pairs are in the order of their first appearance, the rows of a pair in the order of the file; ``place`` is a
    row's position in the file, which is the order in which workers saw their pairs.

    >>> labels = group_labels([("p1", "ann", 3), ("p2", "ann", 0), ("p1", "bob", 4)])
    >>> labels.pair_ids, labels.counts.tolist(), labels.relevance.tolist()
    (('p1', 'p2'), [2, 1], [3, 4, 0])
    """

    pair_ids: tuple[str, ...]
    offsets: IntArray
    workers: tuple[str, ...]
    worker: IntArray
    relevance: IntArray
    place: IntArray
    source: str = "(memory)"

    def __len__(self) -> int:
        """Number of labels."""
        return len(self.relevance)

    @property
    def counts(self) -> IntArray:
        """Number of labels of each pair."""
        return np.diff(self.offsets)

    @cached_property
    def people(self) -> IntArray:
        """Number of different workers of each pair; fewer than its labels if somebody judged it twice."""
        return np.bincount(self.pair[~self.repeated], minlength=len(self.pair_ids))

    @cached_property
    def pair(self) -> IntArray:
        """The pair (its position in ``pair_ids``) of each row."""
        return np.repeat(np.arange(len(self.pair_ids)), self.counts)

    @cached_property
    def repeated(self) -> BoolArray:
        """Whether the worker of each row had judged the same pair before."""
        key = self.pair * max(1, len(self.workers)) + self.worker
        first = np.unique(key, return_index=True)[1]
        repeated = np.ones(len(self), dtype=bool)
        repeated[first] = False
        return repeated

    @property
    def models(self) -> tuple[str, ...]:
        """The workers that are language models."""
        return tuple(worker for worker in self.workers if worker.startswith(MODEL_WORKER))

    def with_rows(self, keep: BoolArray) -> AnnotatorLabels:
        """Return the labels of some rows only; pairs without any label left are kept, empty."""
        counts = np.bincount(self.pair[keep], minlength=len(self.pair_ids))
        return AnnotatorLabels(
            self.pair_ids,
            offsets_of(counts.tolist()),
            self.workers,
            self.worker[keep],
            self.relevance[keep],
            self.place[keep],
            self.source,
        )

    def first_labels(self) -> AnnotatorLabels:
        """Return every worker's first label of each pair, for agreement between different people."""
        return self.with_rows(~self.repeated)


def group_labels(rows: Iterable[tuple[object, object, int]], source: str = "(memory)") -> AnnotatorLabels:
    """Group labels, given as ``(pair_id, worker, relevance)`` in any order, by pair."""
    pairs, workers, levels = zip(*rows, strict=True)
    return _group_by_pair(
        [str(p) for p in pairs], [str(w) for w in workers], np.asarray(levels, dtype=np.int64), source
    )


def read_labels(path: str | os.PathLike[str]) -> AnnotatorLabels:
    """Read a CSV file of labels; the error for a wrong row names its line."""
    document = open_document(path)
    pairs, workers, raw = _columns(document)
    if not pairs:
        raise MomentseekError(f"{path}: there are no labels in it, only a header; export the annotations again")
    for name, values in (("pair_id", pairs), ("worker", workers)):
        if "" in values:
            raise MomentseekError(f"{path}: line {_line(document, values.index(''))} has no {name}; fill it in")
    spellings, code = encode_names(raw)
    level = np.array([_level(text) for text in spellings], dtype=np.int64)
    wrong = np.flatnonzero(level[code] < 0)
    if len(wrong):
        at = int(wrong[0])
        raise MomentseekError(
            f"{path}: line {_line(document, at)} gives pair {pairs[at]} the relevance {raw[at]!r}; "
            f"levels are whole numbers from 0 to {MAX_RELEVANCE}"
        )
    return _group_by_pair(pairs, workers, level[code], str(path))


def write_labels(rows: Iterable[tuple[str, str, int]]) -> bytes:
    """Return the bytes of a file that ``read_labels`` reads."""
    return csv_text([dict(zip(LABEL_COLUMNS, row, strict=True)) for row in rows], LABEL_COLUMNS).encode()


def _columns(document: Document) -> tuple[list[str], list[str], list[str]]:
    if header_of(document) != list(LABEL_COLUMNS):  # more columns, or another order
        rows = [tuple(row.values()) for _, row in rows_of(document, *LABEL_COLUMNS)]
    else:
        try:
            found = [row for row in csv.reader(io.StringIO(document.text, newline="")) if row][1:]
        except csv.Error as e:
            raise MomentseekError(f"{document.path}: not CSV ({e}); export it again") from None
        if set(map(len, found)) - {len(LABEL_COLUMNS)}:
            at = next(i for i, row in enumerate(found) if len(row) != len(LABEL_COLUMNS))
            columns = count(len(found[at]), "column")
            raise MomentseekError(
                f"{document.path}: line {_line(document, at)} has {columns} instead of {len(LABEL_COLUMNS)}"
            )
        rows = [tuple(row) for row in found]
    pairs, workers, levels = zip(*rows, strict=True) if rows else ((), (), ())
    return ([plain_cell(p.strip()) for p in pairs], [plain_cell(w.strip()) for w in workers], list(levels))


def _line(document: Document, row: int) -> str:
    """Return the line number of a row, which is only counted for a message."""
    reader = csv.reader(io.StringIO(document.text, newline=""))
    numbers = (reader.line_num for fields in reader if fields)
    return f"{next(n for i, n in enumerate(numbers) if i == row + 1):,}"


def _level(text: str) -> int:
    """Return the level in a cell, -1 if none; spreadsheets may turn 3 into ``3.0``."""
    try:
        value = float(text)
    except ValueError:
        return -1
    return int(value) if 0 <= value <= MAX_RELEVANCE and value == int(value) else -1


def _group_by_pair(pairs: list[str], workers: list[str], relevance: IntArray, source: str) -> AnnotatorLabels:
    pair_ids, pair = encode_names(pairs)
    names, worker = encode_names(workers)
    order = stable_order(pair.astype(np.int64))
    return AnnotatorLabels(
        pair_ids,
        offsets_of(np.bincount(pair, minlength=len(pair_ids)).tolist()),
        names,
        worker[order].astype(np.int64),
        relevance[order],
        order,
        source,
    )


PAIR_COLUMNS = ("pair_id", "relevance", "annotators", "labels")


def write_pairs(rows: Iterable[tuple[str, int, int, int]]) -> bytes:
    """Return the bytes of a file of judged pairs, ``(pair_id, relevance, annotators, labels)`` each.

    Annotators are different people; a pair has more labels than annotators if somebody judged it twice.

    >>> write_pairs([("7", 3, 1, 2)])
    b'pair_id,relevance,annotators,labels\\n7,3,1,2\\n'
    """
    return csv_text([dict(zip(PAIR_COLUMNS, row, strict=True)) for row in rows], PAIR_COLUMNS).encode()


def read_pairs(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read the relevance level of every pair."""
    result: dict[str, int] = {}
    for line, row in rows_of(open_document(path), "pair_id", "relevance"):
        pair, level = plain_cell(row["pair_id"]), row["relevance"].strip()
        if level not in map(str, range(MAX_RELEVANCE + 1)):
            raise MomentseekError(
                f"{path}: line {line:,} gives pair {pair} the relevance {level!r}; levels are whole numbers from 0 "
                f"to {MAX_RELEVANCE}"
            )
        if pair in result:
            raise MomentseekError(
                f"{path}: line {line:,} judges pair {pair} again; give one level per pair (`momentseek data consensus` "
                "makes one of several labels)"
            )
        result[pair] = int(level)
    if not result:
        raise MomentseekError(f"{path}: there are no pairs in it")
    return result
