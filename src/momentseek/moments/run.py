"""Run: what a system returned for each query, best first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import FloatArray, encode_names, offsets_of
from momentseek.moments.checks import Finding, Policy, check_times
from momentseek.moments.judgements import Saliency
from momentseek.moments.table import MomentTable


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(MomentTable):
    """Query → ranked moments with scores. Rank is the order of the rows; scores never reorder it.

    >>> run = Run.from_rows([("q1", "a", 0, 5, .9), ("q1", "b", 1, 3, .4)])
    >>> run.moments("q1")[0], run.score.tolist()
    (Moment(video='a', start=0.0, end=5.0), [0.9, 0.4])
    """

    score: FloatArray
    saliency: Saliency | None = None
    task: str = "VCMR"
    """What was searched: VCMR (moments in all videos), SVMR (in the right video) or VR (videos; no times)."""

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

        A prediction the policy drops keeps its rank, with no times, so that those below it do not move up.
        Without scores, a prediction's score is minus its rank.
        """
        ids = tuple(map(str, query_ids))
        offsets = offsets_of(counts)
        vocabulary, codes = encode_names(videos)
        starts = np.asarray(start, dtype=np.float64)
        ends = np.asarray(end, dtype=np.float64)
        owner = np.repeat(np.arange(len(ids)), np.diff(offsets))
        if score is None:
            score = (offsets[owner] - np.arange(len(starts))).astype(np.float64)
        findings: tuple[Finding, ...] = ()
        if task != "VR":

            def describe(row: int) -> str:
                return f"query {ids[owner[row]]}, rank {row - offsets[owner[row]] + 1}: {starts[row]:g}–{ends[row]:g} s"

            checked = check_times(starts, ends, None, invalid, describe, source)
            starts, ends, findings = checked.start, checked.end, checked.findings
            starts[checked.void] = ends[checked.void] = 0.0
        return cls(
            query_ids=ids,
            offsets=offsets,
            videos=vocabulary,
            video=codes,
            start=starts,
            end=ends,
            score=np.asarray(score, dtype=np.float64),
            queries=tuple(queries) if queries is not None else None,
            saliency=saliency,
            task=task,
            findings=findings,
            source=source,
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[object, str, float, float, float]], invalid: Policy = "error") -> Run:
        """Build from ``(query_id, video, start, end, score)``, each query's rows best first."""
        groups: dict[str, list[tuple[str, float, float, float]]] = {}
        for query_id, *rest in rows:
            groups.setdefault(str(query_id), []).append(tuple(rest))  # type: ignore[arg-type]
        flat = [row for group in groups.values() for row in group]
        return cls.from_groups(
            tuple(groups),
            (len(g) for g in groups.values()),
            [r[0] for r in flat],
            [r[1] for r in flat],
            [r[2] for r in flat],
            [r[3] for r in flat],
            invalid=invalid,
        )

    def ranked(self) -> Run:
        """The same predictions, each query's sorted by score; ties by video, start, end (the writers' order)."""
        names = np.array(self.videos)
        alphabetical = np.empty(len(names), dtype=np.int64)
        alphabetical[np.argsort(names, kind="stable")] = np.arange(len(names))
        order = np.lexsort((self.end, self.start, alphabetical[self.video], -self.score, self.row_query))
        return Run(
            query_ids=self.query_ids,
            offsets=self.offsets,
            videos=self.videos,
            video=self.video[order],
            start=self.start[order],
            end=self.end[order],
            score=self.score[order],
            queries=self.queries,
            saliency=self.saliency,
            task=self.task,
            findings=self.findings,
            source=self.source,
        )
