"""Evaluate captions: what each adds to every measure, under a named protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.evaluation.coverage import refuse_unknown, some
from momentseek.evaluation.result import Evaluation, Missing, label_of
from momentseek.measures import CaptionAlignment, CaptionMeasure, parse_all
from momentseek.measures.captions.measure import MeanCaptionMeasure
from momentseek.measures.captions.meteor_program import what_meteor_lacks
from momentseek.measures.protocols import CAPTION_MEASURES, Protocol
from momentseek.moments import CaptionTable, Judgements, Run, captions_of
from momentseek.moments.arrays import FloatArray
from momentseek.tables import count

SAME_TIME_SECONDS = 0.1
"""Times of one moment in two files that differ by less are the same, rounded."""
MANY_REFERENCES = 100
"""References of one moment from which on a figure says more of them than of the caption."""


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
            f'for {"it" if len(absent) == 1 else "them"}; count such moments as 0 (missing="zero") or leave them out '
            '(missing="skip")'
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
        notes=(*notes, *_notes(run, truth, chosen)),
        judgements=truth,
        parts=parts,
    )


def _choose(names: Sequence[str], protocol: Protocol) -> tuple[list[CaptionMeasure], list[str]]:
    """The measures, and a note where a default one cannot be had here."""
    chosen = parse_all(names or CAPTION_MEASURES, protocol.options)
    for measure in chosen:
        if not isinstance(measure, CaptionMeasure):
            raise MomentseekError(f"measure {measure.name} is of ranked moments, and there are captions to measure")
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
    """Refuse captions whose ids mean other moments than the references': figures would compare strangers."""
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


def _notes(run: CaptionTable, truth: CaptionTable, measures: Sequence[CaptionMeasure]) -> list[str]:
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
    most = int(np.argmax(truth.caption_counts))
    if truth.caption_counts[most] >= MANY_REFERENCES:
        notes.append(
            f"{truth.source}: moment {truth.query_ids[most]} has {truth.caption_counts[most]:,} references; BLEU, "
            "METEOR and ROUGE-L take the best of them, so figures rise with their number"
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
