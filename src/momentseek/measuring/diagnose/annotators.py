"""How much a run's figures depend on the annotator: each annotator in turn provides the true moments."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.core.reports import count, decimals, percentage, text_table
from momentseek.measuring.evaluate import check_queries
from momentseek.measuring.measures import Alignment, Measure
from momentseek.measuring.result import Missing

_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Reannotation:
    """New annotations of some of the truth's queries; ``start`` and ``end`` are seconds, (queries, annotators).

    ``place`` has the positions of these queries in the truth. Annotators are numbered by their order within each
    query, so number 1 of two queries may be two people.
    """

    place: IntArray
    start: FloatArray
    end: FloatArray
    asked: int
    notes: tuple[str, ...] = ()

    @property
    def annotators(self) -> int:
        """Number of annotators of every query."""
        return int(self.start.shape[1])

    def truth_of(self, truth: Judgements, annotator: int) -> Judgements:
        """Return the matched queries with this annotator's moments as the only relevant ones."""
        video = truth.video[truth.offsets[self.place]]
        return Judgements(
            query_ids=tuple(truth.query_ids[i] for i in self.place),
            offsets=np.arange(len(self.place) + 1, dtype=np.int64),
            videos=truth.videos,
            video=video,
            start=self.start[:, annotator],
            end=self.end[:, annotator],
            relevance=np.ones(len(self.place), dtype=np.int8),
            durations=truth.durations,
            source=f"annotator {annotator + 1}",
        )


def normalise(sentence: str) -> str:
    """Reduce a sentence to lower-case letters and digits, so that punctuation and spaces do not prevent a match.

    >>> normalise(" Person opens the door. ")
    'personopensthedoor'
    """
    return _OTHER.sub("", sentence.lower())


def match_reannotations(tables: Sequence[Judgements], truth: Judgements) -> Reannotation:
    """Find each re-annotated query in the truth, and convert its annotators' times to seconds.

    Times are read as fractions of the video lengths in the table (100 for percent). Queries whose number of annotators
    differs from the usual one, or with an impossible moment, are left out and noted.
    """
    if truth.queries is None:
        raise MomentseekError(f"{truth.source}: has no sentences, by which re-annotated queries are recognised")
    wanted: dict[tuple[str, str], list[int]] = {}
    for i, sentence in enumerate(truth.queries):
        if truth.offsets[i] < truth.offsets[i + 1]:
            video = truth.videos[truth.video[truth.offsets[i]]]
            wanted.setdefault((video.removeprefix("v_"), normalise(sentence)), []).append(i)
    found: list[tuple[int, FloatArray, FloatArray]] = []
    asked = 0
    for table in tables:
        for query in range(len(table)):
            rows = slice(int(table.offsets[query]), int(table.offsets[query + 1]))
            asked += 1
            if rows.start == rows.stop:
                continue
            video = table.videos[table.video[rows.start]].removesuffix(".mp4").removeprefix("v_")
            key = (video, normalise(table.queries[query] if table.queries else ""))
            if wanted.get(key):
                seconds = table.durations[table.video[rows]]
                scale = np.where(np.isnan(seconds), 100.0, seconds)
                found.append((wanted[key].pop(0), table.start[rows] / scale, table.end[rows] / scale))
    if not found:
        raise MomentseekError(f"none of the {asked:,} re-annotated queries is in {truth.source}")
    return _in_seconds(found, asked, truth)


def _in_seconds(found: list[tuple[int, FloatArray, FloatArray]], asked: int, truth: Judgements) -> Reannotation:
    counts = np.array([len(start) for _, start, _ in found])
    usual = int(np.bincount(counts).argmax())
    whole = [entry for entry, n in zip(found, counts, strict=True) if n == usual]
    place = np.array([entry[0] for entry in whole], dtype=np.int64)
    seconds = truth.durations[truth.video[truth.offsets[place]]]
    if np.isnan(seconds).any():
        raise MomentseekError(
            f"{truth.source}: re-annotations are shares of the video, so its videos' durations are needed "
            f"({parameter('videos')})"
        )
    start = np.array([entry[1] for entry in whole]) * seconds[:, None]
    end = np.array([entry[2] for entry in whole]) * seconds[:, None]
    sound = np.all((start >= 0) & (start < end), axis=1)
    notes = []
    if len(whole) < len(found):
        notes.append(f"{len(found) - len(whole):,} queries without {usual} annotators left out")
    if not sound.all():
        notes.append(f"{int((~sound).sum()):,} queries left out, where an annotator's moment has no length")
    if not sound.any():
        raise MomentseekError("no re-annotated query is left, as each has an annotator's moment without length")
    return Reannotation(place[sound], start[sound], end[sound], asked, tuple(notes))


ANNOTATOR_MEASURES = ("AxIoU@{1,5,10}", "R@{1,5,10}[IoU>={0.3,0.5,0.7}]")


def tau_b(x: ArrayLike, y: ArrayLike) -> float:
    r"""Kendall's τ-b: 1 for the same order, −1 for the reverse; NaN if either side ties everything.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(P - T_x)(P - T_y)}}

    with C concordant and D discordant of the P pairs, T tied ones (Kendall 1945).

    >>> tau_b([0.1, 0.2, 0.3], [1, 2, 3]), tau_b([0.1, 0.2, 0.3], [1, 3, 2])
    (1.0, 0.3333333333333333)
    """
    one, two = _signs(x), _signs(y)
    scale = math.sqrt(np.count_nonzero(one) * np.count_nonzero(two))
    return float(one @ two) / scale if scale else float("nan")


def _signs(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    i, j = np.triu_indices(len(array), 1)
    signs: FloatArray = np.sign(array[i] - array[j])
    return signs


def stability(scores: FloatArray) -> tuple[float, float]:
    """Return the mean τ-b over pairs of judges, and the share of pairs that disagree on the winner.

    ``scores`` has the shape (judges, systems). Judges who share at least one of their best systems agree.

    >>> stability(np.array([[0.3, 0.2, 0.1], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]))
    (-0.3333333333333333, 0.6666666666666666)
    """
    pairs = list(combinations(range(len(scores)), 2))
    taus = np.array([tau_b(scores[i], scores[j]) for i, j in pairs])
    best = scores == scores.max(axis=1, keepdims=True)
    changes = [not (best[i] & best[j]).any() for i, j in pairs]
    known = taus[~np.isnan(taus)]
    return (float(known.mean()) if len(known) else float("nan"), float(np.mean(changes)) if pairs else float("nan"))


@dataclass(frozen=True)
class AnnotatorScores:
    """Scores of one run on one measure, with the original truth and with each annotator's."""

    run: str
    measure: str
    original: float
    by_annotator: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean score over annotators."""
        return float(np.mean(self.by_annotator))

    @property
    def sd(self) -> float:
        """The standard deviation over annotators (n − 1)."""
        return float(np.std(self.by_annotator, ddof=1)) if len(self.by_annotator) > 1 else float("nan")

    @property
    def low(self) -> float:
        """The lowest annotator's score."""
        return min(self.by_annotator)

    @property
    def high(self) -> float:
        """The highest annotator's score."""
        return max(self.by_annotator)


@dataclass(frozen=True)
class Stability:
    """How similarly pairs of annotators rank the runs (mean τ-b), and the share of pairs with different winners."""

    measure: str
    tau: float
    winner_changes: float


@dataclass(frozen=True)
class AnnotatorReport:
    """Scores by annotator for the queries that were annotated again, and how much the annotators agree."""

    truth: str
    queries: int
    asked: int
    annotators: int
    agreement: float
    """Mean IoU of two annotators' moments."""
    agreement_with_truth: float
    """Mean IoU of an annotator's moment with the original one."""
    gamma: float
    """Standard deviation over annotators of the first prediction's IoU, pooled over queries and runs: the measured γ
    of the noise model."""
    scores: tuple[AnnotatorScores, ...]
    stability: tuple[Stability, ...]
    notes: tuple[str, ...] = ()


def by_annotator(
    runs: Sequence[tuple[str, Run]],
    truth: Judgements,
    tables: Sequence[Judgements],
    measures: Sequence[Measure],
    *,
    missing: Missing = "error",
) -> AnnotatorReport:
    """Score every run with every annotator of ``tables`` on the queries of ``truth`` that they re-annotated."""
    again = match_reannotations(tables, truth)
    truths = [again.truth_of(truth, a) for a in range(again.annotators)]
    scores: list[AnnotatorScores] = []
    first: list[FloatArray] = []
    for name, run in runs:
        whole = Alignment(run, truth)
        check_queries([whole], truth, missing)
        answered = whole.has_predictions()[again.place]
        counted = answered if missing == "skip" else np.ones(len(again.place), dtype=bool)
        views = [Alignment(run, t) for t in truths]
        tops = np.stack([v.by_rank(v.best_iou(), 1)[:, 0] for v in views])
        first.append(tops[:, np.stack([v.by_rank(v.in_judged_video(), 1)[:, 0] for v in views]).all(axis=0)])
        for m in measures:
            original = _mean(m, whole, again.place[counted])
            scores.append(
                AnnotatorScores(name, m.name, original, tuple(_mean(m, v, np.flatnonzero(counted)) for v in views))
            )
    agreed, with_truth = _agreement(again, truth)
    spread = np.concatenate([f.var(axis=0, ddof=1) for f in first], axis=None) if again.annotators > 1 else np.empty(0)
    return AnnotatorReport(
        truth=truth.source,
        queries=len(again.place),
        asked=again.asked,
        annotators=again.annotators,
        agreement=agreed,
        agreement_with_truth=with_truth,
        gamma=float(np.sqrt(spread.mean())) if len(spread) else float("nan"),
        scores=tuple(scores),
        stability=_stability(scores, measures) if len(runs) > 1 else (),
        notes=again.notes,
    )


def _mean(measure: Measure, view: Alignment, rows: IntArray) -> float:
    return measure.summarise(measure(view)[rows])


def _agreement(again: Reannotation, truth: Judgements) -> tuple[float, float]:
    pairs = list(combinations(range(again.annotators), 2))
    between = [iou(again.start[:, i], again.end[:, i], again.start[:, j], again.end[:, j]) for i, j in pairs]
    row = truth.offsets[again.place]
    with_truth = iou(again.start, again.end, truth.start[row][:, None], truth.end[row][:, None])
    return (float(np.mean(between)) if pairs else float("nan")), float(with_truth.mean())


def _stability(scores: Sequence[AnnotatorScores], measures: Sequence[Measure]) -> tuple[Stability, ...]:
    found = []
    for m in measures:
        table = np.array([s.by_annotator for s in scores if s.measure == m.name]).T
        found.append(Stability(m.name, *stability(table)))
    return tuple(found)


def annotator_text(report: AnnotatorReport) -> str:
    """Render the scores over annotators, how much they agree, and whether they rank the runs similarly."""
    rows = [
        [
            s.run,
            s.measure,
            decimals(s.original),
            decimals(s.mean),
            decimals(s.sd),
            f"{decimals(s.low)}–{decimals(s.high)}",
        ]
        for s in report.scores
    ]
    blocks = [
        "ANNOTATORS: what if somebody else had drawn the true moments?",
        f"{Path(report.truth).name}: {count(report.queries, 'query', 'queries')} of it found among the "
        f"{report.asked:,} re-annotated, by {count(report.annotators, 'annotator')} each.",
        text_table(["run", "measure", "original", "mean", "sd", "range"], rows, align="llr"),
        "original: by the truth given; mean, sd and range: over the annotators, each in turn the truth.",
        f"Two annotators' moments overlap with a mean IoU of {decimals(report.agreement, 2)}; an annotator's with the "
        f"original one, {decimals(report.agreement_with_truth, 2)}.\nA prediction's IoU varies over annotators with a "
        f"standard deviation of {decimals(report.gamma, 2)}: the measured γ of the noise model.",
    ]
    if report.stability:
        order = [[s.measure, decimals(s.tau, 2), percentage(s.winner_changes)] for s in report.stability]
        blocks.append(
            text_table(["measure", "Kendall τ", "other winner"], order)
            + "\nHow similarly two annotators rank the runs (1: equally), and how many pairs disagree on the best."
        )
    return "\n\n".join([*blocks, *(f"Note: {n}." for n in report.notes)])
