"""Evaluate a run: per-query values of every measure, under a named protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.evaluation.groups import labels_of
from momentseek.measures import Alignment, Measure, parse, parse_all, protocol_named
from momentseek.measures.protocols import RANKED, Protocol
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray

Missing = Literal["error", "zero", "skip"]
RunLike = Run | Sequence[Run] | str | os.PathLike[str]
TruthLike = Judgements | str | os.PathLike[str]
UNGRADED = ("R@{1,5,10}[IoU>={0.3,0.5,0.7}]", "AxIoU@{1,5,10}", "mIoU")
HIGHLIGHTS = ("HIT", "SaliencyAP")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a run scored: a value per query and measure (NaN where a query does not count), and how it was got."""

    protocol: str
    run: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...] | None
    measures: tuple[Measure, ...]
    values: FloatArray
    missing: tuple[str, ...] = ()
    percent: bool = False
    truth: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, float] = field(default_factory=dict)
    """How much of what was returned has been judged, as ``{"Judged@10": 0.63}``."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know: broken moments, queries without a relevant one, …."""
    judgements: Judgements | None = None
    """The truth itself, to break the values down by."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The measures' names, in the order of the columns of ``values``."""
        return tuple(m.name for m in self.measures)

    @cached_property
    def means(self) -> dict[str, float]:
        """Measure → its mean over the queries that count."""
        return {m.name: m.summarise(self.values[:, i]) for i, m in enumerate(self.measures)}

    def mean(self, name: str) -> float:
        """The mean of one measure."""
        return self.means[name]

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def by(self, field: str) -> dict[str, tuple[int, dict[str, float]]]:
        """Label → (queries, means), for a field of the truth's queries or ``length``."""
        assert self.judgements is not None
        labels = labels_of(self.judgements, field)
        return {
            label: (
                int((labels == label).sum()),
                {m.name: m.summarise(self.values[labels == label, i]) for i, m in enumerate(self.measures)},
            )
            for label in dict.fromkeys(labels.tolist())
        }


def evaluate(
    run: RunLike,
    truth: TruthLike,
    measures: Iterable[str] | str | None = None,
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    label: str | None = None,
) -> Evaluation:
    """Score ``run`` against ``truth``; both may be files in any known format.

    >>> from momentseek.moments import Judgements, Run
    >>> truth = Judgements.from_rows([("q1", "a", 0, 10, 4), ("q2", "b", 0, 10, 2)])
    >>> run = Run.from_rows([("q1", "a", 0, 8, .9)])
    >>> evaluate(run, truth, "NDCG@10[IoU>={0.5,0.9}]", missing="zero").means
    {'NDCG@10[IoU>=0.5]': 0.5, 'NDCG@10[IoU>=0.9]': 0.0}
    """
    judgements, runs = _open(run, truth)
    rules = protocol_named(protocol)
    asked = (measures,) if isinstance(measures, str) else tuple(measures or ())
    chosen = parse_all(asked, rules.options) if asked else default_measures(rules, judgements, runs)
    reach = [m.reach for m in chosen if m.NAME not in HIGHLIGHTS]
    depth = None if None in reach else max((k for k in reach if k is not None), default=1)
    views = {r.task: Alignment(r, judgements, depth) for r in runs}
    used = [view_for(m, views) for m in chosen]
    absent = check_queries([v for v in views.values() if any(v is u for u in used)], judgements, missing)
    values = np.empty((len(judgements), len(chosen)))
    for i, (measure, view) in enumerate(zip(chosen, used, strict=True)):
        values[:, i] = measure(view)
    if missing == "skip":
        values[[judgements.position[q] for q in absent]] = np.nan
    return Evaluation(
        protocol=rules.name,
        run=label or Path(runs[0].source).name.split(".")[0],
        query_ids=judgements.query_ids,
        queries=judgements.queries,
        measures=tuple(chosen),
        values=values,
        missing=absent,
        percent=rules.percent,
        truth=judgements.source,
        options=dict(rules.options),
        judged=_judged(chosen, used),
        notes=_notes(judgements, runs),
        judgements=judgements,
    )


def _open(run: RunLike, truth: TruthLike) -> tuple[Judgements, tuple[Run, ...]]:
    from momentseek.formats import read_runs, read_truth

    judgements = truth if isinstance(truth, Judgements) else read_truth(truth)
    if isinstance(run, Run):
        return judgements, (run,)
    runs = read_runs(run) if isinstance(run, str | os.PathLike) else tuple(run)
    if not runs:
        raise MomentseekError("there is no run to evaluate")
    return judgements, runs


def default_measures(protocol: Protocol, truth: Judgements, runs: Sequence[Run]) -> list[Measure]:
    """The protocol's measures, without those that this truth and run cannot have."""
    names = protocol.measures
    if not names:
        graded = len(truth.relevance) and (truth.relevance.max() > 1 or truth.relevance.min() < 1)
        names = RANKED if graded else UNGRADED
    chosen = parse_all(names, protocol.options)
    tasks = {r.task for r in runs}
    if len({getattr(m, "task", None) for m in chosen} - {None}) > 1:
        chosen = [m for m in chosen if getattr(m, "task", None) in (None, *tasks)]
    if truth.saliency is None or all(r.saliency is None for r in runs):
        chosen = [m for m in chosen if m.NAME not in HIGHLIGHTS]
    elif not any(len(r.video) for r in runs):
        chosen = [m for m in chosen if m.NAME in HIGHLIGHTS]
    return chosen


def view_for(measure: Measure, views: Mapping[str, Alignment]) -> Alignment:
    """The run a measure speaks of: the one of its task where there are several."""
    if len(views) == 1:
        return next(iter(views.values()))
    task = getattr(measure, "task", "VCMR")
    if task not in views:
        raise MomentseekError(f"measure {measure.name}: the run has {', '.join(views)}, but no {task} predictions")
    return views[task]


def check_queries(views: Sequence[Alignment], truth: Judgements, missing: Missing) -> tuple[str, ...]:
    """Refuse predictions for unjudged queries; find judged queries without predictions."""
    absent: dict[str, None] = {}
    for view in views:
        run = view.run
        unknown = [q for q in run.query_ids if q not in truth.position]
        if unknown:
            raise MomentseekError(
                f"{run.source}: {_some(unknown)} not in {truth.source}; use the truth this run was made for"
            )
        answered = view.answered()
        if run.saliency is not None:
            answered[
                [truth.position[q] for q, n in zip(run.query_ids, np.diff(run.saliency.offsets), strict=True) if n]
            ] = True
        gone = [truth.query_ids[i] for i in np.flatnonzero(~answered)]
        if gone and missing == "error":
            empty = " (an empty list)" if gone[0] in run else ""
            raise MomentseekError(
                f"{run.source}: {_some(gone, verb=('has', 'have'))} no predictions{empty}, but {truth.source} judges "
                f"{'it' if len(gone) == 1 else 'them'}; count such queries as 0 (--missing zero) or leave them out "
                "(--missing skip)"
            )
        absent.update(dict.fromkeys(gone))
    return tuple(absent)


def _some(ids: Sequence[str], verb: tuple[str, str] = ("is", "are")) -> str:
    if len(ids) == 1:
        return f"query {ids[0]} {verb[0]}"
    return f"{len(ids):,} queries ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''}) {verb[1]}"


def _judged(measures: Sequence[Measure], views: Sequence[Alignment]) -> dict[str, float]:
    """Coverage of the deepest list that the ranked measures look at."""
    depths = [(getattr(m, "k", None), v) for m, v in zip(measures, views, strict=True) if m.NAME not in HIGHLIGHTS]
    ranked = [(k, v) for k, v in depths if k is not None and v.run.task == "VCMR"]
    if not ranked:
        return {}
    k, view = max(ranked, key=lambda pair: pair[0])
    measure = parse(f"Judged@{k}")
    return {measure.name: measure.summarise(measure(view))}


def _notes(truth: Judgements, runs: Sequence[Run]) -> tuple[str, ...]:
    notes = [f"{t.source}: {finding}" for t in (truth, *runs) for finding in t.findings]
    relevant = np.zeros(len(truth), dtype=bool)
    relevant[truth.row_query[truth.relevance > 0]] = True
    if not relevant.all():
        ids = [truth.query_ids[i] for i in np.flatnonzero(~relevant)]
        notes.append(f"{truth.source}: {_some(ids, ('has', 'have'))} no relevant moment")
    return tuple(notes)
