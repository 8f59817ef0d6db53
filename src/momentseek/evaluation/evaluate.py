"""Evaluate a run: per-query values of every measure, under a named protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.evaluation.coverage import (
    differing_texts,
    outside_pools,
    refuse_unanswered,
    refuse_unknown,
    unanswered_queries,
    without_relevant,
)
from momentseek.evaluation.groups import labels_of
from momentseek.measures import PROTOCOLS, Alignment, Measure, parse, parse_all
from momentseek.measures.protocols import GRADED_MEASURES, UNGRADED_MEASURES, Protocol
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray
from momentseek.tables import NO_VALUE, count, html_table
from momentseek.tabular import Tabular

Missing = Literal["error", "zero", "skip"]
RunLike = Run | Sequence[Run] | str | os.PathLike[str]
TruthLike = Judgements | str | os.PathLike[str]
HIGHLIGHTS = ("HIT", "SaliencyAP")
FILE_ENDINGS = ("json", "jsonl", "parquet", "txt", "csv")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """What a run scored: a value per query and measure (NaN where a query does not count), and how it was got.

    ``evaluation["mIoU"]`` is the mean of a measure, ``means`` has them all, and ``to_pandas`` the value of each query.
    """

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

    def __repr__(self) -> str:
        shown = ", ".join(f"{self.titles[name]} {value:.4f}" for name, value in list(self.means.items())[:3])
        more = f", … ({len(self.measures)} measures)" if len(self.measures) > 3 else ""
        queries = count(len(self.query_ids), "query", "queries")
        return f"<Evaluation of {self.run}, {queries}, protocol {self.protocol}: {shown}{more}>"

    def _repr_html_(self) -> str:
        queries = count(len(self.query_ids), "query", "queries")
        rows = [
            [self.titles[name], NO_VALUE if np.isnan(value) else f"{value:.4f}"] for name, value in self.means.items()
        ]
        caption = f"{self.run}: {queries}, {len(self.missing):,} missing; protocol {self.protocol}"
        return html_table(["measure", "value"], rows, caption=caption)

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """One row per query: ``query_id``, ``query`` where its words are known, and a column for each measure."""
        columns: dict[str, Sequence[Any]] = {"query_id": self.query_ids}
        if self.queries is not None:
            columns["query"] = self.queries
        return columns | {name: self.values[:, i].tolist() for i, name in enumerate(self.names)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The measures' names, in the order of the columns of ``values``."""
        return tuple(m.name for m in self.measures)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Measure → how tables call it: with ``>`` where the protocol compares so, whatever the name says."""
        return {m.name: m.title for m in self.measures}

    @cached_property
    def means(self) -> dict[str, float]:
        """Measure → its mean over the queries that count."""
        return {m.name: m.summarise(self.values[:, i]) for i, m in enumerate(self.measures)}

    def mean(self, name: str) -> float:
        """Mean of one measure over the queries that count."""
        return self.means[name]

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def by(self, field: str) -> dict[str, tuple[int, dict[str, float]]]:
        """Label → (queries, means), for a field of the truth's queries or ``length``."""
        return {
            label: (
                int(some.sum()),
                {m.name: m.summarise(self.values[some, i]) for i, m in enumerate(self.measures)},
            )
            for label, some in self.members(field).items()
        }

    def members(self, field: str) -> dict[str, BoolArray]:
        """Label → which queries carry it, in order of first appearance."""
        assert self.judgements is not None
        labels = labels_of(self.judgements, field)
        return {label: labels == label for label in dict.fromkeys(labels.tolist())}


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
    if missing not in get_args(Missing):
        raise MomentseekError(f"missing must be error, zero or skip, not {missing!r}")
    judgements, runs = _open(run, truth)
    for each in runs:
        refuse_unknown(each, judgements)
    rules = PROTOCOLS[protocol]
    asked = (measures,) if isinstance(measures, str) else tuple(measures or ())
    chosen = parse_all(asked, rules.options) if asked else default_measures(rules, judgements, runs)
    reach = [m.reach for m in chosen if m.NAME not in HIGHLIGHTS]
    depth = None if None in reach else max((k for k in reach if k is not None), default=1)
    views = {r.task: Alignment(r, judgements, depth) for r in runs}
    used = [view_for(m, views) for m in chosen]
    values = np.empty((len(judgements), len(chosen)))
    absent: dict[str, None] = {}
    for i, (measure, view) in enumerate(zip(chosen, used, strict=True)):
        saliency = measure.NAME in HIGHLIGHTS
        gone = view.once(("unanswered", saliency), partial(unanswered_queries, view, saliency))
        if missing == "error":
            refuse_unanswered(view, gone, saliency)
        values[:, i] = measure(view)
        if measure.NAME != "Judged":
            values[gone, i] = np.nan if missing == "skip" else 0.0
        absent.update((judgements.query_ids[q], None) for q in gone)
    in_use = [v for v in views.values() if any(v is u for u in used)]
    return Evaluation(
        protocol=rules.name,
        run=label or label_of(runs[0].source),
        query_ids=judgements.query_ids,
        queries=judgements.queries,
        measures=tuple(chosen),
        values=values,
        missing=tuple(absent),
        percent=rules.percent,
        truth=judgements.source,
        options=dict(rules.options),
        judged=_judged_share(chosen, used),
        notes=_notes(judgements, in_use),
        judgements=judgements,
    )


def label_of(source: str) -> str:
    """A run's name: its file's, without the endings that only say how it is stored.

    >>> label_of("runs/exp.v2.jsonl.gz"), label_of("(memory)")
    ('exp.v2', '(memory)')
    """
    name = Path(source).name.removesuffix(".gz")
    stem, dot, ending = name.rpartition(".")
    return stem if dot and ending.lower() in FILE_ENDINGS else name


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
    if protocol.by_truth:
        graded = len(truth.relevance) and (truth.relevance.max() > 1 or truth.relevance.min() < 1)
        names = GRADED_MEASURES if graded else UNGRADED_MEASURES
    chosen = parse_all(names, protocol.options)
    tasks = {r.task for r in runs}
    if tasks == {"VR"}:
        return [m for m in chosen if getattr(m, "task", None) == "VR"] or parse_all(["R@{1,5,10,100}[task=VR]"])
    if len({getattr(m, "task", None) for m in chosen} - {None}) > 1:
        chosen = [m for m in chosen if getattr(m, "task", None) in (None, *tasks)]
    if truth.saliency is None or all(r.saliency is None for r in runs):
        chosen = [m for m in chosen if m.NAME not in HIGHLIGHTS]
    elif not any(len(r.video) for r in runs):
        chosen = [m for m in chosen if m.NAME in HIGHLIGHTS]
    return chosen


def view_for(measure: Measure, views: Mapping[str, Alignment]) -> Alignment:
    """The run a measure speaks of: the one of its task where there are several."""
    task = getattr(measure, "task", "VCMR")
    if len(views) == 1:
        view = next(iter(views.values()))
        if view.run.task == "VR" and task != "VR":
            raise MomentseekError(
                f"measure {measure.name}: {view.run.source} ranks videos (VR) and has no times; use R@K[task=VR]"
            )
        return view
    if task not in views:
        raise MomentseekError(f"measure {measure.name}: the run has {', '.join(views)}, but no {task} predictions")
    return views[task]


def _judged_share(measures: Sequence[Measure], views: Sequence[Alignment]) -> dict[str, float]:
    """Coverage of the deepest list that the ranked measures look at."""
    depths = [(getattr(m, "k", None), v) for m, v in zip(measures, views, strict=True) if m.NAME not in HIGHLIGHTS]
    ranked = [(k, v) for k, v in depths if k is not None and v.run.task == "VCMR"]
    if not ranked:
        return {}
    k, view = max(ranked, key=lambda pair: pair[0])
    measure = parse(f"Judged@{k}")
    return {measure.name: measure.summarise(measure(view))}


def _notes(truth: Judgements, views: Sequence[Alignment]) -> tuple[str, ...]:
    runs = [view.run for view in views]
    found = [f"{t.source}: {finding}" for t in (truth, *runs) for finding in t.findings]
    others = [without_relevant(truth), *map(outside_pools, views), *(differing_texts(r, truth) for r in runs)]
    return (*found, *(note for note in others if note))
