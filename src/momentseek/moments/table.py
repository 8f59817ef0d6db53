"""The shape that judgements and runs share: moments grouped by query, one array per column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import CodeArray, FloatArray, IntArray
from momentseek.moments.checks import DataFinding
from momentseek.moments.moment import Moment
from momentseek.tables import count
from momentseek.tabular import Tabular


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentTable(Tabular):
    """Query ``i`` owns rows ``offsets[i]:offsets[i + 1]`` of ``video`` (a position in ``videos``), ``start``, ``end``.

    Query ids are strings throughout (``7`` and ``"7"`` are the same query); formats whose ids are numbers
    write them back as numbers. Build tables with ``from_groups`` or ``from_rows``, which check the times.
    """

    ASKED: ClassVar[tuple[str, str]] = ("query", "queries")
    """What an id of ``query_ids`` names, one and many."""

    query_ids: tuple[str, ...]
    offsets: IntArray
    videos: tuple[str, ...]
    video: CodeArray
    start: FloatArray
    end: FloatArray
    queries: tuple[str, ...] | None = None
    """The queries' texts, where the file has them."""
    source: str = "(memory)"
    """Where the table came from, for messages."""
    findings: tuple[DataFinding, ...] = field(default=())
    """Moments that broke the rules, and what was done with them."""

    def __post_init__(self) -> None:
        reject_duplicates(self.query_ids, self.source, self.ASKED[0])
        if len(self.offsets) != len(self.query_ids) + 1 or self.offsets[-1] != len(self.video):
            raise MomentseekError(f"{self.source}: offsets do not fit the queries and moments")

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.query_ids)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self.position

    def __repr__(self) -> str:
        size = f"{count(len(self), 'query', 'queries')}, {count(len(self.video), 'moment')}"
        return f"<{type(self).__name__} of {self.source}: {size} in {count(len(self.videos), 'video')}>"

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """One row per moment: ``query_id``, ``query`` where its words are known, ``video``, ``start`` and ``end``."""
        rows = self.row_query.tolist()
        columns: dict[str, Sequence[Any]] = {"query_id": [self.query_ids[q] for q in rows]}
        if self.queries is not None:
            columns["query"] = [self.queries[q] for q in rows]
        columns["video"] = [self.videos[v] for v in self.video.tolist()]
        columns["start"], columns["end"] = self.start.tolist(), self.end.tolist()
        return columns

    @property
    def counts(self) -> IntArray:
        """Number of moments of each query."""
        return np.diff(self.offsets)

    @cached_property
    def position(self) -> dict[str, int]:
        """Query id → its place in ``query_ids``."""
        return {q: i for i, q in enumerate(self.query_ids)}

    @cached_property
    def video_code(self) -> dict[str, int]:
        """Video name → its place in ``videos``."""
        return dict(zip(self.videos, range(len(self.videos)), strict=True))

    @cached_property
    def row_query(self) -> IntArray:
        """The place of each row's query in ``query_ids``."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts)

    def rows(self, query_id: str) -> slice:
        """The slice of rows that belong to a query."""
        i = self.position[str(query_id)]
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def moments(self, query_id: str) -> list[Moment]:
        """The moments of one query, in file (rank) order."""
        rows = self.rows(query_id)
        return [
            Moment(self.videos[v], float(s), float(e))
            for v, s, e in zip(self.video[rows], self.start[rows], self.end[rows], strict=True)
        ]

    def text(self, query_id: str) -> str | None:
        """The words of a query; None where the file has none."""
        return self.queries[self.position[query_id]] if self.queries else None


def reject_duplicates(query_ids: Sequence[str], source: str, asked: str = "query") -> None:
    """Refuse a table in which a query stands twice: which of the two counts is anybody's guess."""
    if len(set(query_ids)) != len(query_ids):
        twice = [q for q, n in Counter(query_ids).items() if n > 1]
        more = f" and {len(twice) - 1:,} other{'s' * (len(twice) > 2)} stand" if len(twice) > 1 else " stands"
        raise MomentseekError(f"{source}: {asked} {twice[0]}{more} more than once; keep one entry per {asked}")


def group_by_query(
    rows: Iterable[tuple[object, *tuple[Any, ...]]],
) -> tuple[tuple[str, ...], list[int], list[list[Any]]]:
    """Rows that begin with a query id, grouped by it: the ids, rows per query, and the rows' other columns.

    Queries keep the order of their first appearance, and rows their order within the query.

    >>> group_by_query([("b", "v", 1), ("a", "w", 2), ("b", "x", 3)])
    (('b', 'a'), [2, 1], [['v', 'x', 'w'], [1, 3, 2]])
    """
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for query_id, *rest in rows:
        groups.setdefault(str(query_id), []).append(tuple(rest))
    flat = [row for group in groups.values() for row in group]
    return tuple(groups), [len(g) for g in groups.values()], [list(column) for column in zip(*flat, strict=True)]
