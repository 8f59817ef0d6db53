"""Evaluate a run: per-query values of every measure, under a named protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import get_args

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.evaluation.captions import evaluate_captions
from momentseek.evaluation.coverage import (
    differing_texts,
    outside_pools,
    refuse_unanswered,
    refuse_unknown,
    unanswered_queries,
    without_relevant,
)
from momentseek.evaluation.result import Evaluation, Missing, label_of
from momentseek.measures import PROTOCOLS, Alignment, Measure, parse, parse_all
from momentseek.measures.protocols import GRADED_MEASURES, UNGRADED_MEASURES, Protocol
from momentseek.moments import CaptionTable, Judgements, Run

RunLike = Run | Sequence[Run] | CaptionTable | str | os.PathLike[str]
TruthLike = Judgements | CaptionTable | str | os.PathLike[str]
HIGHLIGHTS = ("HIT", "SaliencyAP")


def evaluate(
    run: RunLike,
    truth: TruthLike,
    measures: Iterable[str] | str | None = None,
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    label: str | None = None,
) -> Evaluation:
    """Score ``run`` against ``truth``; both may be files in any known format, of ranked moments or of captions.

    >>> from momentseek.moments import CaptionTable, Judgements, Run
    >>> truth = Judgements.from_rows([("q1", "a", 0, 10, 4), ("q2", "b", 0, 10, 2)])
    >>> run = Run.from_rows([("q1", "a", 0, 8, .9)])
    >>> evaluate(run, truth, "NDCG@10[IoU>={0.5,0.9}]", missing="zero").means
    {'NDCG@10[IoU>=0.5]': 0.5, 'NDCG@10[IoU>=0.9]': 0.0}
    """
    if missing not in get_args(Missing):
        raise MomentseekError(f"missing must be error, zero or skip, not {missing!r}")
    rules = PROTOCOLS[protocol]
    asked = (measures,) if isinstance(measures, str) else tuple(measures or ())
    judgements, runs = _open(run, truth)
    if isinstance(judgements, CaptionTable) or isinstance(runs, CaptionTable):
        return evaluate_captions(runs, judgements, asked, rules, missing, label)
    if rules.captions:
        raise MomentseekError(
            f"protocol {protocol} measures captions, but {runs[0].source} holds ranked moments; choose another protocol"
        )
    for each in runs:
        refuse_unknown(each, judgements)
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


def _open(run: RunLike, truth: TruthLike) -> tuple[Judgements | CaptionTable, tuple[Run, ...] | CaptionTable]:
    from momentseek.formats import read_answers, read_standard

    if isinstance(run, Run):
        runs: tuple[Run, ...] | CaptionTable = (run,)
    elif isinstance(run, CaptionTable):
        runs = run
    else:
        runs = read_answers(run) if isinstance(run, str | os.PathLike) else tuple(run)
    if not runs:
        raise MomentseekError("there is no run to evaluate")
    if isinstance(truth, Judgements | CaptionTable):
        return truth, runs
    return read_standard(truth, runs), runs


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
