"""Runs: the ranked moments that a system returned for each query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, encode_names, offsets_of
from momentseek.core.moments.judgements import Saliency
from momentseek.core.moments.table import (
    DataFinding,
    MomentTable,
    Policy,
    check_policy,
    check_scores,
    check_times,
    group_by_query,
)

TASKS = ("VCMR", "SVMR", "VR")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run(MomentTable):
    """Query → ranked moments with scores. The order of the rows is the rank; scores never change it.

    >>> run = Run.from_rows([("q1", "a", 0, 5, 0.9), ("q1", "b", 1, 3, 0.4)])
    >>> run.moments("q1")[0], run.score.tolist()
    (Moment(video='a', start=0.0, end=5.0), [0.9, 0.4])
    """

    score: FloatArray
    saliency: Saliency | None = None
    task: str = "VCMR"
    """The search task: VCMR (moments in all videos), SVMR (in the right video) or VR (videos; no times)."""

    @classmethod
    def from_groups(
        cls,
        query_ids: Sequence[object],
        counts: Iterable[int],
        videos: Sequence[str],
        start: ArrayLike,
        end: ArrayLike,
        score: ArrayLike | None = None,
        *,
        queries: Sequence[str] | None = None,
        saliency: Saliency | None = None,
        task: str = "VCMR",
        invalid: Policy = "error",
        source: str = "(memory)",
    ) -> Run:
        """Build from per-query ``counts`` and one entry per prediction, in rank order.

        A prediction that the policy drops keeps its rank, without times, so that lower ones do not move up. Without
        scores, a prediction's score is minus its rank.
        """
        check_policy(invalid)
        if task not in TASKS:
            raise MomentseekError(f"{source}: there is no task {task!r}; tasks are {', '.join(TASKS)}")
        ids = tuple(map(str, query_ids))
        offsets = offsets_of(counts)
        vocabulary, codes = encode_names(videos)
        starts = np.asarray(start, dtype=np.float64)
        ends = np.asarray(end, dtype=np.float64)
        owner = np.repeat(np.arange(len(ids)), np.diff(offsets))
        if score is None:
            score = (offsets[owner] - np.arange(len(starts))).astype(np.float64)
        scores = np.asarray(score, dtype=np.float64)

        def position(row: int) -> str:
            return f"query {ids[owner[row]]}, rank {row - offsets[owner[row]] + 1}"

        findings = check_scores(scores, invalid, position, source)
        findings += _check_saliency(saliency, ids, invalid, source)
        if task != "VR":

            def describe(row: int) -> str:
                return f"{position(row)}: {starts[row]:g}–{ends[row]:g} s"

            checked = check_times(starts, ends, None, invalid, describe, source)
            starts, ends, findings = checked.start, checked.end, checked.findings + findings
            starts[checked.void] = ends[checked.void] = 0.0
        return cls(
            query_ids=ids,
            offsets=offsets,
            videos=vocabulary,
            video=codes,
            start=starts,
            end=ends,
            score=scores,
            queries=tuple(queries) if queries is not None else None,
            saliency=saliency,
            task=task,
            findings=findings,
            source=source,
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[object, str, float, float, float]], invalid: Policy = "error") -> Run:
        """Build from ``(query_id, video, start, end, score)``, each query's rows best first."""
        query_ids, counts, columns = group_by_query(rows)
        videos, start, end, score = columns or [[]] * 4
        return cls.from_groups(query_ids, counts, videos, start, end, score, invalid=invalid)

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """Return one row per prediction: the moment's columns, its ``rank`` (from 1) and ``score``."""
        rank = np.arange(len(self.video)) - self.offsets[self.row_query] + 1
        return {**super().to_columns(), "rank": rank.tolist(), "score": self.score.tolist()}

    def sort_by_score(self) -> Run:
        """Return the run with each query's predictions sorted by score; ties by video, start, end (as in files)."""
        names = np.array(self.videos)
        alphabetical = np.empty(len(names), dtype=np.int64)
        alphabetical[np.argsort(names, kind="stable")] = np.arange(len(names))
        order = np.lexsort((self.end, self.start, alphabetical[self.video], -self.score, self.row_query))
        rows = {name: getattr(self, name)[order] for name in ("video", "start", "end", "score")}
        return replace(self, **rows)


def _check_saliency(
    saliency: Saliency | None, ids: tuple[str, ...], invalid: Policy, source: str
) -> tuple[DataFinding, ...]:
    if saliency is None:
        return ()

    def position(clip: int) -> str:
        query = int(np.searchsorted(saliency.offsets, clip, side="right")) - 1
        return f"query {ids[query]}, clip {clip - saliency.offsets[query]}"

    return check_scores(saliency.scores[:, 0], invalid, position, source, "saliency score")
