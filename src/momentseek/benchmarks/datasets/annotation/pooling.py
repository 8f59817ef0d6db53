"""Pool the first moments of several runs for people or a model to judge.

This is Sparck Jones and van Rijsbergen's pooling (1975) for moments: the union of every run's first K, in the order of
ranks, where a moment that overlaps an earlier one counts as the same. Moments that a truth already judges are left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate, write_candidates
from momentseek.benchmarks.datasets.common import BuiltDataset, Decision, as_json_lines
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import Moment, iou
from momentseek.core.moments.run import Run
from momentseek.core.reports import count, text_table
from momentseek.measuring.compare import unique_labels
from momentseek.measuring.formats import read_run, read_truth
from momentseek.measuring.result import short_labels

POOL_DEPTH = 10
SAME_MOMENT_IOU = 0.7


@dataclass
class PoolEntry:
    """A moment of a query's pool: its best rank, and the runs that return it or one that overlaps it."""

    moment: Moment
    rank: int
    score: float
    runs: list[str] = field(default_factory=list)


def pool_query(lists: Sequence[tuple[str, Sequence[tuple[Moment, float]]]], same: float) -> list[PoolEntry]:
    """Return the pool of one query: rank by rank through all runs, without moments that overlap an earlier one.

    >>> a, b, c = (Moment("v", start, 10) for start in (0, 1, 6))
    >>> pool = pool_query([("x", [(a, 0.9), (c, 0.5)]), ("y", [(b, 0.8)])], 0.7)
    >>> [(p.moment.start, p.rank, p.runs) for p in pool]
    [(0, 1, ['x', 'y']), (6, 2, ['x'])]
    """
    pool: list[PoolEntry] = []
    for rank in range(max((len(some) for _, some in lists), default=0)):
        for name, some in lists:
            if rank >= len(some):
                continue
            moment, score = some[rank]
            known = next((p for p in pool if overlaps(p.moment, moment, same)), None)
            if known is None:
                known = PoolEntry(moment, rank + 1, score)
                pool.append(known)
            if name not in known.runs:
                known.runs.append(name)
    return pool


def overlaps(one: Moment, two: Moment, threshold: float) -> bool:
    """Whether two moments are in the same video and their IoU is at least ``threshold``."""
    return one.video == two.video and float(iou(one.start, one.end, two.start, two.end)) >= threshold


@dataclass(frozen=True)
class RunPool:
    """The moments of a pool that are to be judged, the decisions, and counts by run."""

    candidates: tuple[AnnotationCandidate, ...]
    decisions: tuple[Decision, ...]
    per_run: dict[str, dict[str, int]]
    """Run → how many of its moments are in the pool, were returned by no other run, and were judged before."""


def pool_runs(
    runs: Sequence[tuple[str, Run]], truth: Judgements, *, depth: int = POOL_DEPTH, same: float = SAME_MOMENT_IOU
) -> RunPool:
    """Return the union of the runs' first ``depth`` moments of each query, without those that ``truth`` judges."""
    candidates: list[AnnotationCandidate] = []
    decisions: list[Decision] = []
    per_run = {name: {"pooled": 0, "alone": 0, "judged before": 0} for name, _ in runs}
    seconds = dict(zip(truth.videos, truth.durations.tolist(), strict=True))
    for query in truth.query_ids:
        lists = [(name, _first(run, query, depth)) for name, run in runs]
        judged = [moment for moment, _ in _first(truth, query)]
        for pooled in pool_query(lists, same):
            m = pooled.moment
            pair = f"{query}/{m.video}@{m.start:g}-{m.end:g}"
            before = any(overlaps(m, other, same) for other in judged)
            for name in pooled.runs:
                per_run[name]["pooled"] += 1
                per_run[name]["alone"] += len(pooled.runs) == 1
                per_run[name]["judged before"] += before
            evidence = {"runs": pooled.runs, "rank": pooled.rank}
            decisions.append(Decision(pair, "judged before" if before else "to judge", "pooled", evidence))
            if not before:
                known = seconds.get(m.video)
                candidates.append(
                    AnnotationCandidate(
                        pair_id=pair,
                        query_id=query,
                        query=truth.text(query) or "",
                        video=m.video,
                        start=m.start,
                        end=m.end,
                        score=pooled.score,
                        rank=pooled.rank,
                        batch=1,
                        caption="",
                        duration=known if known is not None and known == known else None,
                    )
                )
    return RunPool(tuple(candidates), tuple(decisions), per_run)


def _first(table: Run | Judgements, query: str, depth: int | None = None) -> list[tuple[Moment, float]]:
    """Return the first moments of a query with their scores, without those with impossible times."""
    if query not in table:
        return []
    rows = table.rows(query)
    scores = table.score if isinstance(table, Run) else table.relevance
    columns = zip(table.video[rows], table.start[rows], table.end[rows], scores[rows], strict=True)
    found = [(table.videos[v], float(start), float(end), float(score)) for v, start, end, score in columns]
    return [(Moment(v, start, end), score) for v, start, end, score in found[:depth] if 0 <= start < end]


def build_pool(
    runs: Sequence[str],
    truth: str,
    out: str,
    *,
    depth: int = POOL_DEPTH,
    same: float = SAME_MOMENT_IOU,
    report: str | None = None,
) -> BuiltDataset:
    """Pool the runs of files for the queries of a truth, which need not have judgements."""
    opened = [read_run(path, invalid="drop") for path in runs]
    if wrong := next((run for run in opened if run.task == "VR"), None):
        raise MomentseekError(f"{wrong.source}: ranks whole videos (VR), and there are no moments to judge")
    found = pool_runs(
        list(zip(unique_labels(short_labels(list(runs))), opened, strict=True)),
        read_truth(truth, invalid="keep"),
        depth=depth,
        same=same,
    )
    rows = [[name, *(f"{n:,}" for n in numbers.values())] for name, numbers in found.per_run.items()]
    text = f"{count(len(found.candidates), 'moment')} to judge, from the first {depth} of {count(len(runs), 'run')}; "
    text += f"two are the same if their IoU is {same:g} or more\n\n"
    text += text_table(["run", "in the pool", "alone", "judged before"], rows)
    files: dict[str | os.PathLike[str], bytes] = {out: write_candidates(found.candidates)}
    if report:
        files[report] = as_json_lines(found.decisions)
    summary = {"to_judge": len(found.candidates), "depth": depth, "same": same, "runs": found.per_run}
    return BuiltDataset(files=files, summary=summary, text=text)
