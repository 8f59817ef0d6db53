"""Make runs: train a model, predict with it, simulate data for it, and compute baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from momentseek.api.files import Path, Videos, open_corpus, write_run
from momentseek.benchmarks.baselines import BASELINES, DEFAULT_SAMPLES, DEFAULT_TOP, BaselineSettings
from momentseek.benchmarks.simulation.corpus import simulate as simulate_series
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import FORMS, GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.registry import did_you_mean
from momentseek.measuring.formats import read_truth
from momentseek.models import require_training
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.benchmarks.simulation.corpus import SimulationReport
    from momentseek.benchmarks.simulation.film_corpus import GroundingReport
    from momentseek.models.training.folder import TrainingCallback, TrainingOutcome
    from momentseek.models.training.session import SeedsOutcome


def train(
    model: str | None = None,
    *,
    data: Data | Path | None = None,
    preset: str | None = None,
    config: Path | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    out: Path | None = None,
    seeds: int | None = None,
    resume: Path | None = None,
    force: bool = False,
    progress: TrainingCallback | None = None,
) -> TrainingOutcome | SeedsOutcome:
    """Train a model to find moments on the data of a folder with a data.toml, and keep its best checkpoint.

    The settings are those of ``preset`` or of the TOML file ``config``; by default, those of the preset that the data
    name. ``settings`` changes single ones: a mapping such as ``{"lr": 5e-4}``, or texts such as ``"lr=5e-4"``. The
    training run is written to the folder ``out`` (default: runs/MODEL-SPLIT); ``force`` replaces an existing one.
    ``seeds`` is the number of times to train, each with another seed. ``resume`` names the folder of a training run
    that was stopped, and needs no other argument. Ctrl-C saves after the current step and stops. Needs
    ``momentseek[train]``.
    """
    require_training()
    from momentseek.models.training.session import run_training

    return run_training(
        model, data=data, preset=preset, config=config, settings=settings, out=out, seeds=seeds, resume=resume,
        force=force, progress=progress,
    )  # fmt: skip


def predict(
    checkpoint: Path,
    data: Data | Path,
    split: str,
    *,
    out: Path | None = None,
    to: str | None = None,
    task: str | None = None,
    top: int | None = None,
    videos: Path | None = None,
    first: int | None = None,
    whole_corpus: bool = False,
    nms: float | None = None,
    device: str = "auto",
) -> Run:
    """Predict moments for the queries of a split with a trained model.

    ``checkpoint`` is a checkpoint's file, or the folder of a training run. ``task`` is VCMR (moments in all videos),
    SVMR (moments in the query's own video) or VR (videos); ``top`` is the number of predictions per query. ``videos``
    names another checkpoint, or a run, whose first ``first`` videos of each query are searched; ``whole_corpus``
    searches all videos even if the split has a candidate pool for each query; ``nms`` drops moments that overlap a
    better one of the same video by more than this IoU. The run is also written to ``out`` if given. Needs
    ``momentseek[train]``.
    """
    require_training()
    from momentseek.models.training.prediction import predict_split

    run = predict_split(
        checkpoint,
        data,
        split,
        task=task,
        top=top,
        videos=videos,
        first=first,
        whole_corpus=whole_corpus,
        nms=nms,
        device=device,
    ).run
    if out is not None:
        write_run(run, out, to=to)
    return run


def simulate(
    out: Path,
    *,
    like: str = "tvr",
    videos: int | None = None,
    queries: int | None = None,
    seed: int = 0,
    hard: float | None = None,
    variant: str | None = None,
    bias: float | None = None,
    verb_bias: float | None = None,
    pool: int | None = None,
    video_dim: int | None = None,
    text_dim: int | None = None,
    force: bool = False,
) -> SimulationReport | GroundingReport:
    """Write a simulated corpus, to train and test on, to the folder ``out``.

    ``like="tvr"`` makes series with subtitles and graded judgements; ``"charades"`` and ``"activitynet"`` make films
    whose moments are biased towards certain positions. ``hard`` ranges from 0 (a linear matcher finds everything) to 1
    (no model can). ``bias``, ``verb_bias`` and ``pool`` are settings of films only, ``queries`` and ``variant`` of
    series only. The same seed gives the same files. Needs ``momentseek[train]``.
    """
    optional_module("h5py", "train")

    if like not in (known := ("tvr", *FORMS)):
        raise MomentseekError(f"there is no corpus like {like!r}; {did_you_mean(like, known)} ({parameter('like')})")
    given = {
        "videos": videos,
        "queries": queries,
        "hard": hard,
        "variant": variant,
        "bias": bias,
        "verb_bias": verb_bias,
        "pool": pool,
        "video_dim": video_dim,
        "text_dim": text_dim,
    }
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    foreign = ("bias", "verb_bias", "pool") if like == "tvr" else ("queries", "variant")
    if wrong := [name for name in foreign if name in chosen]:
        raise MomentseekError(f"{parameter(wrong[0])} is not a setting of {parameter('like', like)}; leave it out")
    if like == "tvr":
        return simulate_series(out, SimulationSettings(seed=seed, **chosen), force=force)
    return simulate_grounding(out, GroundingSettings(seed=seed, like=like, **chosen), force=force)


def baseline(
    name: str,
    test: Judgements | Path,
    *,
    train: Judgements | Path | None = None,
    top: int = DEFAULT_TOP,
    seed: int = 0,
    samples: int = DEFAULT_SAMPLES,
    bandwidth: float | None = None,
    videos: Videos = None,
) -> Run:
    """Predict moments for the queries of ``test`` without any video, to show what a system scores for free.

    ``name`` is chance, predict-all, moment-frequency, bias-based, or a plug-in's baseline. Moment-frequency and
    bias-based learn from ``train`` where moments usually are. Every video must have a duration, in the ground truth or
    in ``videos``.

    >>> truth = Judgements.from_groups(["q"], [1], ["film.mp4"], [2], [5], durations={"film.mp4": 30.0})
    >>> baseline("predict-all", truth).moments("q")
    [Moment(video='film.mp4', start=0.0, end=30.0)]
    """
    chosen = BASELINES[name]
    corpus = open_corpus(videos)

    def read(table: Judgements | Path) -> Judgements:
        return table if isinstance(table, Judgements) else read_truth(table, corpus=corpus, invalid="keep")

    known = read(train) if train is not None else None
    return chosen.predict(known, read(test), BaselineSettings(seed, samples, bandwidth, top))
