"""Blind baselines: predictors that learn nothing, or only where moments are located."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from momentseek.benchmarks.density import kernel_sums
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.core.registry import Registry
from momentseek.measuring.formats import read_corpus, read_truth
from momentseek.measuring.formats.files import writer_for

DEFAULT_TOP = 10
"""Default number of predictions per query."""
DEFAULT_BINS = 20
DEFAULT_SAMPLES = 100
"""Default number of random samples per query."""


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """The settings of all baselines; each uses those that apply to it."""

    seed: int = 0
    samples: int = DEFAULT_SAMPLES
    bandwidth: float | None = None
    top: int = DEFAULT_TOP
    corpus: Mapping[str, float] = field(default_factory=dict)
    """Videos and their seconds; if given, each prediction is in a random one of them (TVR, Table 3)."""
    distinct: bool = False
    """Whether no video of the corpus is drawn twice for a query, as in a ranking of videos (TVR, Table 9)."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A predictor that never sees a video: its name, a one-line title, and whether it needs a training set."""

    name: str
    title: str
    learns: bool
    predictor: Callable[[Judgements, Judgements, BaselineSettings], Run]

    def predict(self, train: Judgements | None, test: Judgements, settings: BaselineSettings | None = None) -> Run:
        """Predict moments for every query of ``test``; ``train`` may be None for baselines that learn nothing."""
        if self.learns and train is None:
            raise MomentseekError(f"{self.name} learns where moments are; give the training set ({parameter('train')})")
        settings = settings or BaselineSettings()
        if settings.corpus:
            return self._predict_anywhere(train, test, settings)
        known = train if train is not None else test
        run = self.predictor(known, test, settings)
        rated = self.learns and known.saliency is not None and test.saliency is not None
        return replace(run, saliency=saliency_by_place(known, test)) if rated else run

    def _predict_anywhere(self, train: Judgements | None, test: Judgements, settings: BaselineSettings) -> Run:
        """Return ``top`` predictions per query, each the baseline's first one in a random video of the corpus."""
        names, seconds, rng = tuple(settings.corpus), settings.corpus, np.random.default_rng(settings.seed)
        top = min(settings.top, len(names)) if settings.distinct else settings.top
        drawn = np.concatenate([rng.choice(len(names), top, replace=not settings.distinct) for _ in range(len(test))])
        videos = [names[i] for i in drawn]
        ends = [seconds[video] for video in videos]
        asked = Judgements.from_groups(
            range(len(videos)), [1] * len(videos), videos, [0.0] * len(videos), ends, durations=dict(seconds)
        )
        found = self.predict(train, asked, replace(settings, corpus={}, top=1))
        scores = np.tile(np.arange(top, 0, -1.0), len(test))
        return Run.from_groups(
            test.query_ids, [top] * len(test), videos, found.start, found.end, scores, queries=test.queries
        )


@dataclass(frozen=True, eq=False)
class QueryVideos:
    """Pairs of a query and a video to search, by query; a grounding dataset has one video per query."""

    query: IntArray
    video: IntArray
    seconds: FloatArray

    def __len__(self) -> int:
        return len(self.query)


def query_videos(test: Judgements) -> QueryVideos:
    """Return the videos of each query: its pool if the truth has pools (MVMR), otherwise those of its moments.

    >>> test = Judgements.from_groups("q", [3], ["a", "b", "a"], [0] * 3, [1] * 3, durations={"a": 9, "b": 7})
    >>> where = query_videos(test)
    >>> where.video.tolist(), where.seconds.tolist()
    ([0, 1], [9.0, 7.0])
    """
    if test.pools is not None:
        query, video = np.repeat(np.arange(len(test)), np.diff(test.pools.offsets)), test.pools.video
    else:
        query, video = test.row_query, test.video
    pairs = query * len(test.videos) + video
    _, first = np.unique(pairs, return_index=True)
    first = np.sort(first)
    query, video = query[first], video[first].astype(np.int64)
    return QueryVideos(query, video, seconds_of(test, video))


def seconds_of(table: Judgements, video: IntArray) -> FloatArray:
    """Return the lengths of the videos with these codes; an unknown length raises an error."""
    seconds = table.durations[video]
    wrong = np.flatnonzero(~(np.isfinite(seconds) & (seconds > 0)))
    if len(wrong):
        raise MomentseekError(
            f"{table.source}: the duration of video {table.videos[video[wrong[0]]]} is unknown; "
            f"give a list of videos with durations ({parameter('videos')})"
        )
    return seconds


def training_locations(train: Judgements) -> FloatArray:
    """Return ``(start, end)`` of the relevant training moments as fractions of their videos, within [0, 1].

    >>> training_locations(Judgements.from_groups(["q"], [1], ["a"], [2], [9], durations={"a": 8.0})).tolist()
    [[0.25, 1.0]]
    """
    rows = np.flatnonzero(train.relevance > 0)
    seconds = seconds_of(train, train.video[rows].astype(np.int64))
    shares = np.clip(np.column_stack([train.start[rows], train.end[rows]]) / seconds[:, None], 0, 1)
    shares = shares[shares[:, 0] < shares[:, 1]]
    if not len(shares):
        raise MomentseekError(
            f"{train.source}: there is no moment to learn from; give another training set ({parameter('train')})"
        )
    return shares


def rank_candidates(
    test: Judgements, where: QueryVideos, start: FloatArray, end: FloatArray, score: FloatArray, top: int
) -> Run:
    """Build a run of each query's ``top`` candidates by score.

    Candidates are ``(pairs, candidates)``, in the order of ``where``, with times as fractions of the video. Equal
    scores keep their order.
    """
    if top < 1:
        raise MomentseekError(f"too few predictions per query ({top}); ask for at least one ({parameter('top')})")
    width = start.shape[1]
    query = np.repeat(where.query, width)
    order = np.lexsort((-score.ravel(), query))
    counts = np.bincount(query, minlength=len(test))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    order = order[rank < top]
    place = order // width
    return Run.from_groups(
        test.query_ids,
        np.minimum(counts, top).tolist(),
        [test.videos[code] for code in where.video[place].tolist()],
        start.ravel()[order] * where.seconds[place],
        end.ravel()[order] * where.seconds[place],
        score.ravel()[order],
        queries=test.queries,
    )


def saliency_by_place(train: Judgements, test: Judgements, bins: int = DEFAULT_BINS) -> Saliency:
    """Predict for each clip of the test videos the mean rating of training clips at the same relative position.

    >>> rated = Saliency(np.array([0, 4]), np.array([[0.0], [0.0], [4.0], [0.0]]))
    >>> train = Judgements.from_groups(["q"], [1], ["a"], [4], [6], durations={"a": 8.0}, saliency=rated)
    >>> saliency_by_place(train, train, bins=2).scores.ravel().tolist()
    [0.0, 0.0, 2.0, 2.0]
    """
    assert train.saliency is not None
    assert test.saliency is not None

    def places(offsets: IntArray) -> IntArray:
        counts = np.diff(offsets)
        return np.concatenate([np.arange(n) * bins // max(n, 1) for n in counts.tolist()] or [np.zeros(0, np.int64)])

    known = places(train.saliency.offsets)
    sums = np.bincount(known, train.saliency.scores.mean(1), minlength=bins)
    mean = sums / np.maximum(np.bincount(known, minlength=bins), 1)
    return Saliency(test.saliency.offsets, mean[places(test.saliency.offsets)][:, None])


def chance(test: Judgements, *, top: int = DEFAULT_TOP, seed: int = 0) -> Run:
    """Return ``top`` random spans per query and video, every ``0 <= start < end <= duration`` equally likely.

    The smaller and the larger of two uniform draws have that distribution. The order is random too.

    >>> test = Judgements.from_groups(["q"], [1], ["a"], [2], [5], durations={"a": 30.0})
    >>> run = chance(test, top=3, seed=1)
    >>> len(run.start), bool((run.start < run.end).all() and run.end.max() <= 30)
    (3, True)
    """
    rng = np.random.default_rng(seed)
    where = query_videos(test)
    ends = np.sort(rng.random((len(where), top, 2)), axis=2)
    return rank_candidates(test, where, ends[:, :, 0], ends[:, :, 1], rng.random((len(where), top)), top)


def predict_all(test: Judgements, *, top: int = DEFAULT_TOP) -> Run:
    """Predict the whole video, once per query and video (Lan et al., debiased grounding, §5.1).

    Its score shows how much long moments alone give away: on ActivityNet-CD's test-iid a dR@1 of 20 % at IoU 0.5.

    >>> test = Judgements.from_groups(["q"], [1], ["a"], [2], [5], durations={"a": 30.0})
    >>> predict_all(test).moments("q")
    [Moment(video='a', start=0.0, end=30.0)]
    """
    where = query_videos(test)
    whole = np.ones((len(where), 1))
    return rank_candidates(test, where, 0 * whole, whole, whole, top)


def moment_frequency(train: Judgements, test: Judgements, *, bins: int = DEFAULT_BINS, top: int = DEFAULT_TOP) -> Run:
    """Predict the most frequent moments of the training set, the same for every query.

    DiDeMo's prior (Hendricks et al. 2017, §4.1) counts its six five-second chunks. Here every video is divided into
    ``bins`` equal parts, and a training moment is rounded to them (at least one part). The score is the share of
    training moments there; of equally frequent ones, the earlier and shorter comes first.

    >>> at = dict(durations={"a": 10.0})
    >>> train = Judgements.from_groups("xyz", [1] * 3, ["a"] * 3, [0, 0.1, 5], [2, 2.1, 10], **at)
    >>> run = moment_frequency(train, Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at), bins=10)
    >>> run.moments("q"), run.score.round(2).tolist()
    ([Moment(video='a', start=0.0, end=2.0), Moment(video='a', start=5.0, end=10.0)], [0.67, 0.33])
    """
    shares = training_locations(train)
    first = np.minimum(np.rint(shares[:, 0] * bins), bins - 1)
    last = np.maximum(np.rint(shares[:, 1] * bins), first + 1)
    spans, counts = np.unique(np.column_stack([first, last]), axis=0, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:top]
    where = query_videos(test)
    start, end, score = (
        np.tile(column, (len(where), 1))
        for column in (spans[best, 0] / bins, spans[best, 1] / bins, counts[best] / len(shares))
    )
    return rank_candidates(test, where, start, end, score, top)


BANDWIDTHS = {"Charades": 0.008, "ActivityNet": 0.0013}
"""Kernel bandwidths that, with 100 samples, give the paper's figures on each dataset (docs/evaluating.md)."""
MAX_DRAWING_ROUNDS = 1000


def bias_based(
    train: Judgements,
    test: Judgements,
    *,
    bandwidth: float | None = None,
    samples: int = DEFAULT_SAMPLES,
    top: int = DEFAULT_TOP,
    seed: int = 0,
) -> Run:
    r"""Predict ``samples`` draws per query and video from a density of training locations, ranked by that density.

    .. math:: (s, e) \sim \frac{1}{N} \sum_j \mathcal{N}\big((s_j, e_j),\, h^2 I\big)

    Lan et al., debiased grounding, §5.1, fit a Gaussian density and draw "several" locations from it; a hundred,
    ranked by density, reproduces their figures. A draw that extends beyond the video is ranked as drawn and then
    clipped to it; one that would be empty is drawn again. The score is the density.

    >>> at = dict(durations={"a": 10.0})
    >>> train = Judgements.from_groups("xyz", [1] * 3, ["a"] * 3, [1, 1, 5], [3, 3, 9], **at)
    >>> run = bias_based(train, Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at), bandwidth=0.001, top=1)
    >>> run.start.round(1).tolist(), run.end.round(1).tolist()
    ([1.0], [3.0])
    """
    if samples < 1:
        raise MomentseekError(f"too few samples to rank ({samples}); draw at least one ({parameter('samples')})")
    known = training_locations(train)
    width = default_bandwidth(train) if bandwidth is None else bandwidth
    where = query_videos(test)
    drawn = _draw(known, len(where) * samples, width, np.random.default_rng(seed))
    density = kernel_sums(known, drawn, width, radius=5.0) / (2 * np.pi * width**2 * len(known))
    within = np.clip(drawn, 0, 1)
    start, end, score = (x.reshape(len(where), samples) for x in (within[:, 0], within[:, 1], density))
    return rank_candidates(test, where, start, end, score, top)


def default_bandwidth(train: Judgements) -> float:
    """Return ActivityNet's bandwidth for ActivityNet's videos (``v_…``), and Charades' for all others.

    >>> default_bandwidth(Judgements.from_rows([("q", "v_QOlSCBRmfWY", 0, 5, 1)]))
    0.0013
    """
    return BANDWIDTHS["ActivityNet" if all(v.startswith("v_") for v in train.videos) else "Charades"]


def _draw(known: FloatArray, count: int, width: float, rng: np.random.Generator) -> FloatArray:
    """Return ``count`` random training locations, moved by Gaussian noise, that overlap the video."""
    found = np.empty((0, 2))
    for _ in range(MAX_DRAWING_ROUNDS):
        missing = count - len(found)
        if not missing:
            return found
        some = known[rng.integers(len(known), size=missing)] + width * rng.standard_normal((missing, 2))
        within = np.clip(some, 0, 1)
        found = np.concatenate([found, some[within[:, 0] < within[:, 1]]])
    raise MomentseekError(
        f"a density of bandwidth {width:g} has hardly any moments within a video; choose a smaller "
        f"{parameter('bandwidth')}"
    )


BASELINES: Registry[Baseline] = Registry("baseline")
"""All baselines by name."""
for _baseline in (
    Baseline(
        "bias-based",
        "draws from the density of training locations, densest first",
        learns=True,
        predictor=lambda train, test, s: bias_based(
            train, test, bandwidth=s.bandwidth, samples=s.samples, top=s.top, seed=s.seed
        ),
    ),
    Baseline(
        "chance",
        "random spans of the video",
        learns=False,
        predictor=lambda _, test, s: chance(test, top=s.top, seed=s.seed),
    ),
    Baseline(
        "moment-frequency",
        "the most frequent training locations",
        learns=True,
        predictor=lambda train, test, s: moment_frequency(train, test, top=s.top),
    ),
    Baseline("predict-all", "the whole video", learns=False, predictor=lambda _, test, s: predict_all(test, top=s.top)),
):
    BASELINES.add(_baseline.name, _baseline)


def write_baseline(
    name: str,
    *,
    train: str | None,
    test: str,
    out: str,
    format: str | None = None,
    videos: str | None = None,
    settings: BaselineSettings,
) -> tuple[dict[str, float | None], Run]:
    """Answer the queries of the file ``test`` and write the run; return the settings it depends on, and the run."""
    writer = writer_for(format, Path(out), "run")
    corpus = read_corpus(videos) if videos else None
    queries = read_truth(test, corpus=corpus, invalid="keep")
    known = read_truth(train, corpus=corpus, invalid="keep") if train else None
    if name == "bias-based" and settings.bandwidth is None and known is not None:
        settings = replace(settings, bandwidth=default_bandwidth(known))
    run = BASELINES[name].predict(known, queries, settings)
    write_bytes(Path(out), writer.to_bytes((run,), corpus))
    used = {"chance": ("seed",), "bias-based": ("bandwidth", "samples", "seed")}.get(name, ())
    return {key: getattr(settings, key) for key in used}, run
