"""Evaluate a run: compute every measure for each query, under a named protocol."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import get_args

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MomentTable
from momentseek.core.reports import count
from momentseek.measuring.formats import read_answers, read_standard
from momentseek.measuring.measures import (
    PROTOCOLS,
    Alignment,
    CaptionAlignment,
    CaptionMeasure,
    Measure,
    parse,
    parse_all,
)
from momentseek.measuring.measures.captions.measure import MeanCaptionMeasure
from momentseek.measuring.measures.captions.meteor import what_meteor_lacks
from momentseek.measuring.measures.grammar import CAPTION_MEASURES, GRADED_MEASURES, UNGRADED_MEASURES, Protocol
from momentseek.measuring.result import Evaluation, Missing, label_of


def refuse_unknown(run: MomentTable, truth: MomentTable) -> None:
    """Raise an error for predictions of queries that are not judged, or captions of moments without references."""
    unknown = [q for q in run.query_ids if q not in truth.position]
    if unknown:
        made = "these captions were" if isinstance(run, CaptionTable) else "this run was"
        raise MomentseekError(
            f"{run.source}: {some(unknown, asked=run.ASKED)} not in {truth.source}; use the truth {made} made for"
        )


def unanswered_queries(view: Alignment, saliency: bool, empty: bool = False) -> IntArray:
    """Return the positions of judged queries for which the run has no predictions, or no saliency scores.

    With ``empty``, an empty list counts as an answer: only queries that the run does not name at all are returned.
    """
    if empty:
        return np.array([i for i, query in enumerate(view.truth.query_ids) if query not in view.run], dtype=np.int64)
    if not saliency:
        return np.flatnonzero(~view.has_predictions())
    answered: BoolArray = np.zeros(view.queries, dtype=bool)
    if view.run.saliency is not None:
        counts = np.diff(view.run.saliency.offsets)
        answered[[view.truth.position[q] for q, n in zip(view.run.query_ids, counts, strict=True) if n]] = True
    return np.flatnonzero(~answered)


def refuse_unanswered(view: Alignment, positions: IntArray, saliency: bool) -> None:
    """Raise an error for a run that leaves out judged queries."""
    if not len(positions):
        return
    run, truth = view.run, view.truth
    gone = [truth.query_ids[i] for i in positions]
    what = "saliency scores" if saliency else "predictions"
    empty = " (an empty list)" if gone[0] in run else ""
    raise MomentseekError(
        f"{run.source}: {some(gone, ('has', 'have'))} no {what}{empty}, but {truth.source} judges "
        f"{'it' if len(gone) == 1 else 'them'}; count such queries as 0 ({parameter('missing', 'zero')}) or leave "
        "them out "
        f"({parameter('missing', 'skip')})"
    )


def check_queries(views: Sequence[Alignment], truth: Judgements, missing: str) -> None:
    """Raise an error for predictions of unjudged queries and, if ``missing`` is ``error``, for unanswered queries."""
    for view in views:
        refuse_unknown(view.run, truth)
        if missing == "error":
            refuse_unanswered(view, unanswered_queries(view, saliency=False), saliency=False)


def differing_texts(run: Run, truth: Judgements) -> str | None:
    """Return a note if run and truth have different texts for a query; an error if its id is only a position.

    An id such as ``3MSZA:2`` means the third sentence of a video. If its texts differ, the two files number their
    queries differently, and every figure would be wrong. Punctuation and case do not matter.
    """
    if run.queries is None or truth.queries is None:
        return None
    positions = [truth.position[q] for q in run.query_ids]
    texts = [(q, a, truth.queries[i]) for q, a, i in zip(run.query_ids, run.queries, positions, strict=True)]
    other = [(q, a, b) for q, a, b in texts if a != b and a and b and _letters(a) != _letters(b)]
    if not other:
        return None
    query, ours, theirs = other[0]
    words = f"{run.source}: {some([q for q, _, _ in other], ('has', 'have'))} other words than in {truth.source}"
    example = f"query {query}: {ours.strip()!r} and {theirs.strip()!r}"
    video, _, position = query.rpartition(":")
    if position.isdigit() and video in truth.video_code:
        raise MomentseekError(f"{words} ({example}), so the two files do not number their queries alike")
    return f"{words} ({example})"


def outside_pools(view: Alignment) -> str | None:
    """Return a note on predictions in videos outside their query's pool (MVMR)."""
    pools, truth = view.truth.pools, view.truth
    if pools is None:
        return None
    owner = np.repeat(np.arange(len(truth)), np.diff(pools.offsets))
    inside = np.isin(view.query * len(truth.videos) + view.video, owner * len(truth.videos) + pools.video)
    outside = int((~inside | (view.video < 0)).sum())
    if not outside:
        return None
    return f"{view.run.source}: {outside:,} of {len(view.query):,} predictions lie outside their query's pool of videos"


def without_relevant(truth: Judgements) -> str | None:
    """Return a note on queries that have no relevant moment."""
    relevant = np.zeros(len(truth), dtype=bool)
    relevant[truth.row_query[truth.relevance > 0]] = True
    ids = [truth.query_ids[i] for i in np.flatnonzero(~relevant)]
    return f"{truth.source}: {some(ids, ('has', 'have'))} no relevant moment" if ids else None


def judged_by_models(truth: Judgements) -> str | None:
    """Return a note if language models judged moments, so that nobody mistakes their judgements for people's."""
    judges = truth.columns.get("judge")
    if not judges or not any(judges):
        return None
    models = sorted({str(judge) for judge in judges if judge})
    number = sum(bool(judge) for judge in judges)
    if number == len(judges):
        return f"{truth.source}: all moments were judged by {', '.join(models)}, none by people"
    return (
        f"{truth.source}: judgements are mixed: {number:,} of {len(judges):,} moments were judged by "
        f"{', '.join(models)}, the others by people"
    )


def some(
    ids: Sequence[str], verb: tuple[str, str] = ("is", "are"), asked: tuple[str, str] = ("query", "queries")
) -> str:
    """Describe queries (or whatever was ``asked``): the single one, or their number and the first three.

    >>> some(["a"]), some(["a", "b", "c", "d"])
    ('query a is', '4 queries (a, b, c, …) are')
    """
    if len(ids) == 1:
        return f"{asked[0]} {ids[0]} {verb[0]}"
    return f"{len(ids):,} {asked[1]} ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''}) {verb[1]}"


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


SAME_TIME_SECONDS = 0.1
"""Largest difference, due to rounding, between the times of the same moment in two files."""
MANY_REFERENCES = 100
"""Number of references of one moment from which a note warns that they raise the figures."""


def evaluate_captions(
    run: CaptionTable | Sequence[Run],
    truth: CaptionTable | Judgements,
    measures: Sequence[str],
    protocol: Protocol,
    missing: Missing,
    label: str | None,
) -> Evaluation:
    """Score the captions of ``run`` against the references of ``truth``, moment by moment."""
    if not isinstance(run, CaptionTable):
        raise MomentseekError(f"{run[0].source}: holds ranked moments, but {truth.source} has captions to compare with")
    if isinstance(truth, Judgements):
        truth = captions_of(truth)
    if not protocol.captions and not protocol.by_truth:
        raise MomentseekError(
            f"protocol {protocol.name} measures ranked moments, but {run.source} holds captions; use tvc or coco"
        )
    refuse_unknown(run, truth)
    _refuse_without_references(truth)
    _refuse_other_moments(run, truth)
    chosen, notes = _choose(measures, protocol)
    view = CaptionAlignment(run, truth)
    gone = np.flatnonzero(~np.array(view.answered))
    absent = [truth.query_ids[i] for i in gone]
    if absent and missing == "error":
        raise MomentseekError(
            f"{run.source}: {some(absent, ('has', 'have'), truth.ASKED)} no caption, but {truth.source} has references "
            f"for {'it' if len(absent) == 1 else 'them'}; count such moments as 0 ({parameter('missing', 'zero')}) "
            "or leave them out "
            f"({parameter('missing', 'skip')})"
        )
    values = np.empty((len(truth), len(chosen)))
    parts: dict[str, FloatArray] = {}
    for i, measure in enumerate(chosen):
        statistics = measure.statistics(view)
        values[:, i] = measure.figures(statistics)
        if missing == "skip":
            values[gone, i] = np.nan
            statistics = np.where(np.isin(np.arange(len(truth)), gone)[:, None], np.nan, statistics)
        if not isinstance(measure, MeanCaptionMeasure):
            parts[measure.name] = statistics
    return Evaluation(
        protocol=protocol.name,
        run=label or label_of(run.source),
        query_ids=truth.query_ids,
        queries=tuple(group[0] for group in truth.groups()),
        measures=tuple(chosen),
        values=values,
        missing=tuple(absent),
        percent=protocol.percent,
        truth=truth.source,
        options=dict(protocol.options),
        notes=(*notes, *_caption_notes(run, truth, chosen)),
        judgements=truth,
        parts=parts,
    )


def _choose(names: Sequence[str], protocol: Protocol) -> tuple[list[CaptionMeasure], list[str]]:
    """Return the measures, and a note if a default measure cannot be computed on this machine."""
    chosen = parse_all(names or CAPTION_MEASURES, protocol.options)
    for measure in chosen:
        if not isinstance(measure, CaptionMeasure):
            raise MomentseekError(f"measure {measure.name} is for ranked moments, not for captions")
    found = [measure for measure in chosen if isinstance(measure, CaptionMeasure)]
    lacking = None if names else what_meteor_lacks()
    if lacking is None:
        return found, []
    return [m for m in found if m.NAME != "METEOR"], [f"METEOR is left out; to have it, {lacking}"]


def _refuse_without_references(truth: CaptionTable) -> None:
    bare = [truth.query_ids[i] for i in np.flatnonzero(truth.caption_counts == 0)]
    if len(bare) == len(truth):
        split = f", as {truth.variant} is published" if truth.variant else ""
        raise MomentseekError(f"{truth.source}: has no captions{split}, so there is nothing to compare with")
    if bare:
        raise MomentseekError(
            f"{truth.source}: {some(bare, ('has', 'have'), truth.ASKED)} no caption to compare with; add "
            f"{'one' if len(bare) == 1 else 'them'}, or take the moment{'s' * (len(bare) > 1)} out"
        )


def _refuse_other_moments(run: CaptionTable, truth: CaptionTable) -> None:
    """Raise an error for captions whose ids mean other moments than in the references."""
    for moment_id in run.query_ids if len(run.start) and len(truth.start) else ():
        mine, theirs = run.rows(moment_id), truth.rows(moment_id)
        if mine.stop - mine.start != 1 or theirs.stop - theirs.start != 1:
            continue
        (ours,), (other,) = run.moments(moment_id), truth.moments(moment_id)
        apart = max(abs(ours.start - other.start), abs(ours.end - other.end))
        if ours.video != other.video or apart > SAME_TIME_SECONDS:
            raise MomentseekError(
                f"{run.source}: moment {moment_id} is {ours.start:g}–{ours.end:g} s of {ours.video}, but in "
                f"{truth.source} {other.start:g}–{other.end:g} s of {other.video}; use the truth these captions were "
                "made for"
            )


def _caption_notes(run: CaptionTable, truth: CaptionTable, measures: Sequence[CaptionMeasure]) -> list[str]:
    notes = [f"{table.source}: {finding}" for table in (truth, run) for finding in table.findings]
    for table, what in ((run, "caption"), (truth, "reference")):
        empty = sum(not text.strip() for text in table.captions)
        if empty:
            notes.append(
                f"{table.source}: {empty:,} {what}{'s are' if empty > 1 else ' is'} empty and can match nothing"
            )
        if any(measure.letters == "ascii" for measure in measures):
            notes += _other_letters(table, what)
    extra = int((run.caption_counts > 1).sum())
    if extra:
        have = "has" if extra == 1 else "have"
        notes.append(f"{run.source}: {count(extra, *run.ASKED)} {have} several captions, of which the first counts")
    largest = int(np.argmax(truth.caption_counts))
    if truth.caption_counts[largest] >= MANY_REFERENCES:
        notes.append(
            f"{truth.source}: moment {truth.query_ids[largest]} has {truth.caption_counts[largest]:,} references; "
            "BLEU, METEOR and ROUGE-L take the best of them, so figures rise with their number"
        )
    if len(truth) == 1 and any(measure.NAME.startswith("CIDEr") for measure in measures):
        notes.append(f"{truth.source}: has one moment, with which CIDEr is always 0: no word is rarer than another")
    return notes


def _other_letters(table: CaptionTable, what: str) -> list[str]:
    other = [text for text in table.captions if not text.isascii()]
    if not other:
        return []
    lost = sum(not any(c.isascii() and c.isalnum() for c in text) for text in other)
    gone = f", and nothing is left of {lost:,}" if lost else ""
    some_captions = f"{count(len(other), what)} {'has' if len(other) == 1 else 'have'}"
    return [
        f"{table.source}: {some_captions} characters outside ASCII, which TVC's evaluator leaves out{gone}; keep them "
        "with protocol coco or [letters=all] (the measures are made for English)"
    ]


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
    """Score ``run`` against ``truth``: tables, or files in any known format, of ranked moments or captions.

    >>> from momentseek import CaptionTable, Judgements, Run
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
    ranks = [m.max_rank for m in chosen if m.NAME not in HIGHLIGHTS]
    depth = None if None in ranks else max((k for k in ranks if k is not None), default=1)
    views = {r.task: Alignment(r, judgements, depth) for r in runs}
    used = [view_for(m, views) for m in chosen]
    values = np.empty((len(judgements), len(chosen)))
    absent: dict[str, None] = {}
    for i, (measure, view) in enumerate(zip(chosen, used, strict=True)):
        saliency = measure.NAME in HIGHLIGHTS
        empty = measure.COUNTS_EMPTY
        gone = view.once(("unanswered", saliency, empty), partial(unanswered_queries, view, saliency, empty))
        if missing == "error":
            refuse_unanswered(view, gone, saliency)
        values[:, i] = measure(view)
        if missing == "skip" or not (empty or measure.NAME == "Judged"):
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
    """Return the protocol's measures, without those that cannot be computed for this truth and run."""
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
    """Return the run that a measure applies to: the one of its task if there are several."""
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
    """Return the judged share of the results at the largest cutoff of the ranked measures."""
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
    others = [
        judged_by_models(truth),
        without_relevant(truth),
        *map(outside_pools, views),
        *(differing_texts(r, truth) for r in runs),
    ]
    return (*found, *(note for note in others if note))
