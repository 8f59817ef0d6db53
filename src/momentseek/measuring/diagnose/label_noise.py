"""The effect of ambiguous labels on a run's figures: bias, variance and error of AxIoU and R (AxIoU supplement C)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.reports import count, decimals, text_table
from momentseek.measuring.evaluate import check_queries
from momentseek.measuring.measures import Alignment, Measure
from momentseek.measuring.measures.axiou import AxIoU
from momentseek.measuring.measures.recall import Recall
from momentseek.measuring.result import Missing

NOISE_MEASURES = ("AxIoU@{1,5,10}", "R@{1,5,10}[IoU>={0.3,0.5,0.7}]")
DEFAULT_GAMMAS = (0.05, 0.1, 0.2)
NOISE_THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))
EXAMPLE_IOU = 0.5
"""The true IoU of the paper's example (Fig. 2)."""
DEFAULT_DRAWS = 100
Score = Callable[[FloatArray], FloatArray]
"""Computes a measure's value per query from the best IoU among the first k, (queries, k)."""


@dataclass(frozen=True)
class QueryErrors:
    """Per query: bias (expected observed minus true value), variance of the observed value, mean squared error."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray

    @classmethod
    def exact(cls, bias: FloatArray, variance: FloatArray) -> QueryErrors:
        """Build the errors of a known distribution, whose mean squared error is bias² + variance."""
        return cls(bias, variance, bias**2 + variance)

    def times(self, noisy: BoolArray) -> QueryErrors:
        """Return the errors of queries with noise, and 0 for the others."""
        return QueryErrors(self.bias * noisy, self.variance * noisy, self.mse * noisy)


def axiou_errors(r: ArrayLike, gamma: float) -> QueryErrors:
    r"""Return the errors of AxIoU@1 under :math:`\hat r = r + N(0, \gamma^2)`: no bias, variance γ².

    >>> axiou_errors(0.5, 0.1).mse.round(4).tolist()
    0.01
    """
    shape = np.asarray(r, dtype=np.float64).shape
    return QueryErrors.exact(np.zeros(shape), np.full(shape, gamma**2))


def recall_errors(r: ArrayLike, threshold: ArrayLike, gamma: float, strict: bool = False) -> QueryErrors:
    r"""Return the errors of R@1[IoU>=θ] under :math:`\hat r = r + N(0, \gamma^2)`.

    .. math:: bias = P(\hat r \ge \theta) - 1\{r \ge \theta\}, \qquad variance = P(\hat r \ge \theta) P(\hat r < \theta)

    ``strict`` compares the true r with ``>``; for the noisy one it makes no difference.

    >>> errors = recall_errors([0.5, 0.5], [0.5, 0.6], gamma=0.1)
    >>> errors.bias.round(4).tolist(), errors.variance.round(4).tolist()
    ([-0.5, 0.1587], [0.25, 0.1335])
    """
    true, limit = np.asarray(r, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    passes = normal_cdf((true - limit) / gamma)
    hit = true > limit if strict else true >= limit
    return QueryErrors.exact(passes - hit, passes * (1 - passes))


def normal_cdf(z: ArrayLike) -> FloatArray:
    """Return the standard normal distribution function.

    >>> normal_cdf([0.0, 1.96]).round(4).tolist()
    [0.5, 0.975]
    """
    erf: FloatArray = np.asarray(
        np.frompyfunc(math.erf, 1, 1)(np.asarray(z, dtype=np.float64) / math.sqrt(2)), dtype=np.float64
    )
    return (1 + erf) / 2


@dataclass(frozen=True)
class Overlaps:
    """The run's IoUs by query and rank, which ranks have a prediction, and which of these can have noise."""

    iou: FloatArray
    present: BoolArray
    noisy: BoolArray


def simulate_noise(
    overlaps: Overlaps,
    scores: Mapping[str, Score],
    gammas: Sequence[float],
    *,
    draws: int = DEFAULT_DRAWS,
    clip: bool = False,
    seed: int = 0,
) -> dict[tuple[str, float], QueryErrors]:
    """Add N(0, γ²) to every prediction's IoU, ``draws`` times, and return the errors of each score.

    All γ and scores use the same noise, scaled, so that they can be compared. ``clip`` keeps noisy IoUs within
    [0, 1], which the paper's model does not. Only one draw is held in memory at a time.

    >>> one = Overlaps(np.array([[0.5]]), np.array([[True]]), np.array([[True]]))
    >>> found = simulate_noise(one, {"AxIoU@1": lambda best: best[:, 0]}, [0.1], draws=4000)["AxIoU@1", 0.1]
    >>> found.variance.round(2).tolist(), bool(abs(found.bias[0]) < 0.005)
    ([0.01], True)
    """
    rng = np.random.default_rng(seed)
    true = {name: score(best_so_far(overlaps.iou, overlaps.present)) for name, score in scores.items()}
    sums = {(name, gamma): np.zeros((2, len(overlaps.iou))) for name in scores for gamma in gammas}
    for _ in range(draws):
        noise = rng.standard_normal(overlaps.iou.shape) * overlaps.noisy
        for gamma in gammas:
            observed = overlaps.iou + gamma * noise
            if clip:
                np.clip(observed, 0, 1, out=observed)
            best = best_so_far(observed, overlaps.present)
            for name, score in scores.items():
                off = score(best) - true[name]
                sums[name, gamma] += off, off**2
    found = {}
    for key, (first, second) in sums.items():
        mean, mse = first / draws, second / draws
        found[key] = QueryErrors(mean, np.maximum(0, mse - mean**2) * draws / max(1, draws - 1), mse)
    return found


def best_so_far(iou: FloatArray, present: BoolArray) -> FloatArray:
    """Return the highest value among the first k of each list, for every k; a list that has ended keeps its best.

    >>> best_so_far(np.array([[0.2, -0.1, 0.0], [0.0, 0.0, 0.0]]), np.array([[1, 1, 0], [0, 0, 0]], bool)).tolist()
    [[0.2, 0.2, 0.2], [0.0, 0.0, 0.0]]
    """
    best: FloatArray = np.maximum.accumulate(np.where(present, iou, -np.inf), axis=1)
    best[np.isneginf(best)] = 0.0
    return best


def covers(measure: Measure) -> bool:
    """Whether the noise model is defined for the measure: AxIoU, and R of moments of any length."""
    if isinstance(measure, Recall):
        return measure.iou is not None and measure.task == "VCMR" and measure.length == "full"
    return isinstance(measure, AxIoU)


def depth_of(measure: Measure) -> int:
    """Return the number of ranks the measure uses."""
    return int(getattr(measure, "k", 1))


def value_of(measure: Measure, best: FloatArray) -> FloatArray:
    """Return the measure's value per query, from the best IoU among the first k for every query (row) and k (column).

    >>> from momentseek.measuring.measures import parse
    >>> best = np.array([[0.4, 0.6]])
    >>> value_of(parse("AxIoU@2"), best).tolist(), value_of(parse("R@1[IoU>=0.5]"), best).tolist()
    ([0.5], [0.0])
    """
    if isinstance(measure, Recall):
        top = best[:, measure.k - 1]
        assert measure.iou is not None
        return (top > measure.iou if measure.strict else top >= measure.iou).astype(np.float64)
    mean: FloatArray = best[:, : depth_of(measure)].mean(axis=1)
    return mean


@dataclass(frozen=True)
class NoiseError:
    """The error of one measure at one noise level γ, averaged over queries.

    ``shift`` is the expected change of the run's mean, and ``spread`` the standard deviation of that mean. The other
    three are means over queries of each query's bias², variance and squared error.
    """

    measure: str
    gamma: float
    value: float
    shift: float
    spread: float
    bias_squared: float
    variance: float
    mse: float
    method: str


@dataclass(frozen=True)
class NoiseCurve:
    """Mean bias² and variance of R@1 at one γ, by threshold (like Fig. 2, on a run's own IoUs)."""

    gamma: float
    bias_squared: tuple[float, ...]
    variance: tuple[float, ...]
    thresholds: tuple[float, ...] = NOISE_THRESHOLDS


@dataclass(frozen=True)
class RunNoise:
    """One run's figures under noise, over the queries that count."""

    run: str
    queries: int
    errors: tuple[NoiseError, ...]
    curves: tuple[NoiseCurve, ...]


@dataclass(frozen=True)
class NoiseReport:
    """All runs, and the paper's example: K = 1 and a true IoU of 0.5."""

    truth: str
    runs: tuple[RunNoise, ...]
    example: tuple[NoiseError, ...]
    gammas: tuple[float, ...]
    draws: int
    clip: bool
    seed: int
    skipped: tuple[str, ...] = ()


def label_noise(
    runs: Sequence[tuple[str, Run]],
    truth: Judgements,
    measures: Sequence[Measure],
    gammas: Sequence[float] = DEFAULT_GAMMAS,
    *,
    missing: Missing = "error",
    draws: int = DEFAULT_DRAWS,
    clip: bool = False,
    seed: int = 0,
) -> NoiseReport:
    """Compute the errors of every AxIoU and R among ``measures`` under every γ, for each run.

    The noise represents uncertain boundaries of the true moment, so it only affects predictions in the right video;
    elsewhere the IoU stays 0. K = 1 without clipping is exact; the rest is simulated.
    """
    if any(not g > 0 for g in gammas):
        raise MomentseekError(
            f"the noise level γ must be greater than 0; give {parameter('noise')} a number such as 0.1"
        )
    chosen = [m for m in measures if covers(m)]
    skipped = [f"{m.name}: the noise model is defined for AxIoU and R of moments" for m in measures if not covers(m)]
    depth = max((depth_of(m) for m in chosen), default=1)
    scores: dict[str, Score] = {m.name: partial(value_of, m) for m in chosen if clip or depth_of(m) > 1}
    found = []
    for name, run in runs:
        view = Alignment(run, truth)
        check_queries([view], truth, missing)
        kept = view.has_predictions() if missing == "skip" else np.ones(len(truth), dtype=bool)
        overlaps = overlaps_of(view, depth, kept)
        simulated = simulate_noise(overlaps, scores, gammas, draws=draws, clip=clip, seed=seed) if scores else {}
        first, noisy = overlaps.iou[:, 0], overlaps.noisy[:, 0]
        best = np.maximum.accumulate(overlaps.iou, axis=1)
        errors = [
            _summary(
                m, g, value_of(m, best), simulated.get((m.name, g)) or _exact(m, first, noisy, g), m.name in scores
            )
            for m in chosen
            for g in gammas
        ]
        curves = tuple(_curve(first, noisy, g) for g in gammas)
        found.append(RunNoise(name, int(kept.sum()), tuple(errors), curves))
    one = np.array([EXAMPLE_IOU])
    example = [
        _summary(m, g, value_of(m, one[None]), _exact(m, one, np.array([True]), g))
        for m in chosen
        for g in gammas
        if depth_of(m) == 1
    ]
    return NoiseReport(truth.source, tuple(found), tuple(example), tuple(gammas), draws, clip, seed, tuple(skipped))


def overlaps_of(view: Alignment, depth: int, kept: BoolArray) -> Overlaps:
    """Return the run's best IoU with a relevant moment at every rank, (queries, depth), for the queries ``kept``."""
    return Overlaps(
        view.by_rank(view.best_iou(), depth)[kept],
        view.by_rank(np.ones(len(view.query)), depth).astype(bool)[kept],
        view.by_rank(view.in_judged_video(), depth).astype(bool)[kept],
    )


def _curve(r: FloatArray, noisy: BoolArray, gamma: float) -> NoiseCurve:
    by_threshold = [recall_errors(r, t, gamma) for t in NOISE_THRESHOLDS]
    return NoiseCurve(
        gamma,
        tuple(float((e.bias**2 * noisy).mean()) for e in by_threshold),
        tuple(float((e.variance * noisy).mean()) for e in by_threshold),
    )


def _exact(measure: Measure, r: FloatArray, noisy: BoolArray, gamma: float) -> QueryErrors:
    if not isinstance(measure, Recall):
        return axiou_errors(r, gamma).times(noisy)
    assert measure.iou is not None
    return recall_errors(r, measure.iou, gamma, measure.strict).times(noisy)


def _summary(
    measure: Measure, gamma: float, true: FloatArray, errors: QueryErrors, simulated: bool = False
) -> NoiseError:
    squared, scatter = float(errors.mse.mean()), float(errors.variance.mean())
    return NoiseError(
        measure=measure.name,
        gamma=gamma,
        value=float(true.mean()),
        shift=float(errors.bias.mean()),
        spread=float(np.sqrt(scatter / len(true))),
        bias_squared=max(0.0, squared - scatter),
        variance=scatter,
        mse=squared,
        method="simulated" if simulated else "exact",
    )


def noise_text(report: NoiseReport) -> str:
    """Render a table of every measure by γ for each run, then the paper's example."""
    model = "kept within 0 and 1" if report.clip else "not clipped"
    blocks = [
        "LABEL NOISE: how much do the figures change if the true moments are uncertain?",
        f"Model: every IoU in the right video is observed with Gaussian noise of standard deviation γ ({model}).\n"
        f"K = 1 is exact, the rest simulated with {report.draws} draws (seed {report.seed}); "
        f"{Path(report.truth).name}.",
    ]
    levels = [f"γ {g:g}" for g in report.gammas]
    for run in report.runs:
        rows = []
        for measure in dict.fromkeys(e.measure for e in run.errors):
            errors = [e for e in run.errors if e.measure == measure]
            moved = [f"{e.shift:+.4f} ± {e.spread:.4f}" for e in errors]
            rows.append([measure, decimals(errors[0].value), *moved, *(decimals(e.mse) for e in errors)])
        header = ["measure", "value", *levels, *(f"error, {level}" for level in levels)]
        blocks.append(f"{run.run}, {count(run.queries, 'query', 'queries')}\n" + text_table(header, rows))
    blocks.append(
        "Under each γ: the expected change of the mean (more queries do not reduce it) ± its standard deviation;\n"
        "error: mean squared error of a single query's value, bias² + variance. With K > 1, AxIoU is biased too: the\n"
        "best of several noisy IoUs is higher than the best of the true ones."
    )
    if report.example:
        rows = [
            [
                e.measure,
                f"{e.gamma:g}",
                f"{e.shift:+.4f}",
                decimals(e.bias_squared),
                decimals(e.variance),
                decimals(e.mse),
            ]
            for e in report.example
        ]
        blocks.append(
            "One query whose true IoU is 0.5 (the paper's example, Fig. 2"
            + ("; its noise is never clipped)\n" if report.clip else ")\n")
            + text_table(["measure", "γ", "bias", "bias²", "variance", "MSE"], rows)
            + "\nA threshold at the true IoU turns small noise into a coin toss: its error is far larger."
        )
    blocks += [f"Left out: {text}." for text in report.skipped]
    return "\n\n".join(blocks)
