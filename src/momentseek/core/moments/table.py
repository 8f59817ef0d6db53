"""The table type of judgements and runs: moments grouped by query, one array per column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, CodeArray, FloatArray, IntArray
from momentseek.core.moments.moment import Moment
from momentseek.core.reports import Tabular, count

Policy = Literal["error", "drop", "clip", "keep"]
"""``error`` refuses the file; ``drop`` removes a judged moment and voids a prediction (it keeps its rank and matches
nothing); ``clip`` clips times to the video and drops moments that are then empty; ``keep`` leaves times unchanged, as
the official evaluators do."""

POLICIES: tuple[str, ...] = get_args(Policy)
MAX_EXAMPLES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DataFinding:
    """Moments that break one rule: their number, a description of the first few, and what was done."""

    problem: str
    count: int
    action: str
    examples: tuple[str, ...]
    what: str = "moment"
    """The kind of thing that breaks the rule."""

    def __str__(self) -> str:
        some = ", ".join(self.examples) + (", …" if self.count > len(self.examples) else "")
        return f"{count(self.count, self.what)} with {self.problem} {self.action} ({some})"


@dataclass(frozen=True, slots=True)
class CheckedTimes:
    """Times after applying the policy, the void rows, and the findings."""

    start: FloatArray
    end: FloatArray
    void: BoolArray
    findings: tuple[DataFinding, ...]


def check_policy(policy: str) -> None:
    """Refuse a policy that does not exist.

    >>> check_policy("ignore")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no policy 'ignore' for invalid moments; ...
    """
    if policy not in POLICIES:
        choices = f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}"
        raise MomentseekError(f"there is no policy {policy!r} for invalid moments; choose {choices}")


def check_scores(
    scores: FloatArray, policy: Policy, describe: Callable[[int], str], where: str, what: str = "score"
) -> tuple[DataFinding, ...]:
    """Refuse scores that are not finite, which cannot be ranked; ``keep`` only reports them."""
    rows = np.flatnonzero(~np.isfinite(scores))
    if not len(rows):
        return ()
    if policy != "keep":
        raise MomentseekError(
            f"{where}: {describe(int(rows[0]))} has the {what} {scores[rows[0]]}; "
            f"{what}s must be finite numbers ({parameter('invalid', 'keep')} takes them as they are)"
        )
    examples = tuple(describe(int(r)) for r in rows[:MAX_EXAMPLES_SHOWN])
    return (DataFinding(f"a {what} that is not a finite number", len(rows), "kept as is", examples),)


def check_durations(durations: Mapping[str, float], where: str) -> None:
    """Refuse durations that are not positive or are infinite; NaN means unknown."""
    for video, seconds in durations.items():
        if seconds <= 0 or seconds == np.inf:
            raise MomentseekError(f"{where}: the duration of video {video} is {seconds:g} s; expected more than 0 s")


def check_times(
    start: FloatArray,
    end: FloatArray,
    limit: FloatArray | None,
    policy: Policy,
    describe: Callable[[int], str],
    where: str,
) -> CheckedTimes:
    """Apply ``policy`` to rows whose times break ``0 <= start < end`` (and ``end <= limit`` if known).

    An end beyond the video is only clipped or reported, never refused: too many published files have one.
    """
    start, end = start.copy(), end.copy()
    void = np.zeros(len(start), dtype=bool)
    findings: list[DataFinding] = []

    def note(rows: BoolArray, problem: str, action: str) -> None:
        first = np.flatnonzero(rows)[:MAX_EXAMPLES_SHOWN]
        findings.append(DataFinding(problem, int(rows.sum()), action, tuple(describe(int(r)) for r in first)))

    def settle(rows: BoolArray, problem: str, clip: Callable[[], None] | None) -> None:
        if not rows.any():
            return
        if policy == "error" or (policy == "keep" and problem.startswith("times that")):
            note(rows, problem, "found")
            raise MomentseekError(
                f"{where}: {findings[-1]}; correct the file, or choose what to do with such moments "
                f"({parameter('invalid', 'drop', 'clip', 'keep')})"
            )
        if policy == "keep":
            note(rows, problem, "kept as is")
        elif policy == "clip" and clip is not None:
            note(rows, problem, "clipped")
            clip()
        else:
            note(rows, problem, "dropped")
            void[rows] = True

    settle(~(np.isfinite(start) & np.isfinite(end)), "times that are not finite numbers", None)
    negative = ~void & (start < 0)
    settle(negative, "a negative start", lambda: np.copyto(start, 0.0, where=negative))
    if limit is not None:
        beyond = ~void & (end > limit)
        if beyond.any():
            note(beyond, "an end beyond the video", "clipped" if policy == "clip" else "kept as is")
            if policy == "clip":
                np.copyto(end, limit, where=beyond)
    settle(~void & (start >= end), "start >= end", None)
    return CheckedTimes(start, end, void, tuple(findings))


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentTable(Tabular):
    """Query ``i`` has rows ``offsets[i]:offsets[i + 1]`` of ``video`` (an index into ``videos``), ``start``, ``end``.

    Query ids are strings throughout (``7`` and ``"7"`` are the same query); formats whose ids are numbers
    write them back as numbers. Build tables with ``from_groups`` or ``from_rows``, which check the times.
    """

    ASKED: ClassVar[tuple[str, str]] = ("query", "queries")
    """The noun for an id of ``query_ids``, singular and plural."""

    query_ids: tuple[str, ...]
    offsets: IntArray
    videos: tuple[str, ...]
    video: CodeArray
    start: FloatArray
    end: FloatArray
    queries: tuple[str, ...] | None = None
    """The queries' texts, if the file has them."""
    source: str = "(memory)"
    """Origin of the table, for messages."""
    findings: tuple[DataFinding, ...] = field(default=())
    """Moments that break the rules, and what was done with them."""

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
        """Return one row per moment: ``query_id``, ``query`` if its text is known, ``video``, ``start`` and ``end``."""
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
        """Query id → its index in ``query_ids``."""
        return {q: i for i, q in enumerate(self.query_ids)}

    @cached_property
    def video_code(self) -> dict[str, int]:
        """Video name → its index in ``videos``."""
        return dict(zip(self.videos, range(len(self.videos)), strict=True))

    @cached_property
    def row_query(self) -> IntArray:
        """The index of each row's query in ``query_ids``."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts)

    def rows(self, query_id: str) -> slice:
        """Return the slice of a query's rows."""
        i = self.position[str(query_id)]
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def moments(self, query_id: str) -> list[Moment]:
        """Return the moments of one query, in file (rank) order."""
        rows = self.rows(query_id)
        return [
            Moment(self.videos[v], float(s), float(e))
            for v, s, e in zip(self.video[rows], self.start[rows], self.end[rows], strict=True)
        ]

    def text(self, query_id: str) -> str | None:
        """Return the text of a query, or None if the file has none."""
        return self.queries[self.position[query_id]] if self.queries else None


def reject_duplicates(query_ids: Sequence[str], source: str, asked: str = "query") -> None:
    """Refuse a table with duplicate query ids."""
    if len(set(query_ids)) != len(query_ids):
        twice = [q for q, n in Counter(query_ids).items() if n > 1]
        more = f" and {len(twice) - 1:,} other{'s' * (len(twice) > 2)} occur" if len(twice) > 1 else " occurs"
        raise MomentseekError(f"{source}: {asked} {twice[0]}{more} more than once; keep one entry per {asked}")


def group_by_query(
    rows: Iterable[tuple[object, *tuple[Any, ...]]],
) -> tuple[tuple[str, ...], list[int], list[list[Any]]]:
    """Group rows that begin with a query id: return the ids, the rows per query, and the other columns.

    Queries keep the order of their first appearance, and rows their order within the query.

    >>> group_by_query([("b", "v", 1), ("a", "w", 2), ("b", "x", 3)])
    (('b', 'a'), [2, 1], [['v', 'x', 'w'], [1, 3, 2]])
    """
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for query_id, *rest in rows:
        groups.setdefault(str(query_id), []).append(tuple(rest))
    flat = [row for group in groups.values() for row in group]
    return tuple(groups), [len(g) for g in groups.values()], [list(column) for column in zip(*flat, strict=True)]
