"""Train a model given by name: choose its settings, then train once or with several seeds.

``momentseek train`` and ``momentseek.train`` share this module; ``loop.train`` does the training.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.reports import text_table
from momentseek.measuring.resampling import SeedSpread, spread
from momentseek.models.features.data import Data, open_data
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import Assignments, TrainConfig, TrainingSettings
from momentseek.models.training.folder import CONFIG_FILE, TrainingCallback, TrainingOutcome, saved_config
from momentseek.models.training.loop import train
from momentseek.models.training.prediction import read_report
from momentseek.models.training.presets import configure, settings_table
from momentseek.models.training.setup import resolve_config, used_splits
from momentseek.models.training.warm_start import refuse_other_weights, source_digest, weights_digest

LIMIT_STOP_REASONS = {"minutes": "time", "patience": "patience"}
"""Limits that may end training before its last step, and the reason its report then gives."""
SeedCallback = Callable[[int, Path], None]
"""Called with a seed and its folder."""


def score_spreads(reports: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, SeedSpread]]:
    """Mean and standard deviation of every measure over training reports: split → measure → spread."""
    values: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        for split, scores in report["scores"].items():
            for name, value in scores.items():
                values.setdefault(split, {}).setdefault(name, []).append(value)
    return {split: {name: spread(v) for name, v in scores.items()} for split, scores in values.items()}


def scores_text(reports: Sequence[Mapping[str, Any]]) -> str:
    """A table of the reports' scores: mean ± sd if there are several."""
    scores = score_spreads(reports)
    names = list(dict.fromkeys(name for of_split in scores.values() for name in of_split))
    rows = [[name, *(str(scores[split][name]) for split in scores)] for name in names]
    about = reports[0]["data"]
    note = f"{about['name']}, a simulation\n" if about["simulated"] else f"{about['name']}\n"
    return note + text_table(["measure", *scores], rows)


def train_or_read(
    config: TrainConfig, data: Data, out: Path, *, progress: TrainingCallback | None = None, force: bool = False
) -> tuple[Mapping[str, Any], TrainingOutcome | None]:
    """Return the report of a training run: read it if the run is finished, else train, or continue training.

    The outcome is None if the run was already finished. An empty report means that training was stopped. A finished
    run is refused if its data, its number of steps or its earlier stage have changed; ``force`` trains again.
    """
    report = read_report(out) if out.is_dir() and not force else None
    if report is not None and _is_same_config(report.get("config"), resolve_config(config).table()):
        if report.get("data", {}).get("fingerprint") != data.fingerprint_of(used_splits(config)):
            raise MomentseekError(
                f"{out}: its report is of other data than {data.path} has now; give the data it was trained on, or "
                "train in another folder"
            )
        _refuse_other_stages(report, resolve_config(config), out)
        return report, None
    if report is not None:
        refuse_other_limits(report, config, out)
    outcome = train(
        config, data, out, resume=(out / CONFIG_FILE).is_file() and not force, progress=progress, force=force
    )
    return outcome.report, outcome


@dataclass(frozen=True)
class SeedsOutcome:
    """The result of training with several seeds: the reports of the finished ones."""

    folder: Path
    """The folder with a training run per seed."""
    wanted: int
    """Number of seeds to be trained."""
    reports: list[Mapping[str, Any]]
    """The content of each report.json, in the order of the seeds."""

    @property
    def complete(self) -> bool:
        """Whether all seeds are finished; False if training was stopped."""
        return len(self.reports) == self.wanted

    @property
    def scores(self) -> dict[str, dict[str, SeedSpread]]:
        """Mean and standard deviation of every measure: split → measure → spread."""
        return score_spreads(self.reports)

    def as_json(self) -> dict[str, Any]:
        """The content of seeds.json: the seeds, and the mean and standard deviation of every measure by split."""
        several = len(self.reports) > 1
        return {
            "seeds": [report["seed"] for report in self.reports],
            "scores": {
                split: {name: {"mean": s.mean, "sd": s.sd if several else None} for name, s in scores.items()}
                for split, scores in self.scores.items()
            },
        }


def seeded_runs(config: TrainConfig, out: Path, count: int) -> list[tuple[TrainConfig, Path]]:
    """The config and the folder (seed-N of ``out``) for each of ``count`` seeds, starting at the config's seed."""
    first = config.training.seed
    return [
        (replace(config, training=replace(config.training, seed=seed)), out / f"seed-{seed}")
        for seed in range(first, first + count)
    ]


def train_seeds(
    config: TrainConfig,
    data: Data,
    out: Path,
    count: int,
    *,
    progress: TrainingCallback | None = None,
    announce: SeedCallback | None = None,
    force: bool = False,
) -> SeedsOutcome:
    """Train with ``count`` seeds, starting at the config's seed, each in a folder seed-N of ``out``.

    A finished seed is not trained again, unless ``force`` is set. A seed that was stopped is continued. ``announce`` is
    called with each seed and its folder before its training.
    """
    outcome = SeedsOutcome(out, count, [])
    for seeded, folder in seeded_runs(config, out, count):
        if announce is not None:
            announce(seeded.training.seed, folder)
        report, _ = train_or_read(seeded, data, folder, progress=progress, force=force)
        if not report:
            return outcome
        outcome.reports.append(report)
    return outcome


def refuse_other_limits(report: Mapping[str, Any], config: TrainConfig, out: Path) -> None:
    """Refuse to change the length of finished training, because its learning rate followed the planned steps.

    Training that ran out of time or patience continues if it gets more of it.
    """
    try:
        was, wanted = TrainConfig.of(report["config"]).training, config.training
    except (KeyError, TypeError, AttributeError, MomentseekError):
        return  # a report of another version; prepare_training checks the changed settings
    for name in ("steps", *LIMIT_STOP_REASONS):
        if _limit(was, name) == _limit(wanted, name):
            continue
        old, new = getattr(was, name), getattr(wanted, name)
        if (
            name in LIMIT_STOP_REASONS
            and report.get("stopped") == LIMIT_STOP_REASONS[name]
            and (new is None or new > (old or 0))
        ):
            continue
        raise MomentseekError(
            f"{out}: holds finished training with {_limit(was, name)} and not {_limit(wanted, name)}; choose another "
            f"folder, or train again ({parameter('force', True)})"
        )


def _limit(training: TrainingSettings, name: str) -> str:
    """A limit of training as shown in a message; without steps, the epochs."""
    value = getattr(training, name)
    if name == "steps" and not value:
        return f"epochs={training.epochs:g}"
    return f"no {name}" if value is None else f"{name}={value:g}"


def _refuse_other_stages(report: Mapping[str, Any], config: TrainConfig, out: Path) -> None:
    """Refuse a report if the checkpoint that training began from, or its first stage, has changed since.

    Files that no longer exist are not checked. Reports of earlier versions do not record their first stage.
    """
    begin, first = config.data.begin, report.get("first_stage")
    if begin is not None and Path(begin).exists():
        weights = weights_digest(load_checkpoint(begin).model)
        refuse_other_weights(report.get("began_from"), weights, config, out)
    if isinstance(first, Mapping) and config.data.first_stage is not None and Path(config.data.first_stage).exists():
        source = Path(config.data.first_stage)
        if first.get("digest") != source_digest(source):
            raise MomentseekError(
                f"{source}: is another first stage than {out} was measured with; put it back, or train in another "
                "folder"
            )


def _is_same_config(one: Any, two: Mapping[str, Any]) -> bool:
    """Whether a report's config equals this one, apart from the path of the data (which have a fingerprint)."""
    if not isinstance(one, Mapping) or not isinstance(one.get("data"), Mapping):
        return False
    try:
        filled = resolve_config(TrainConfig.of(one)).table()  # settings newer than the report get their defaults
    except MomentseekError:
        return False
    return {**filled, "data": {**filled["data"], "path": two["data"]["path"]}} == two


def run_training(
    model: str | None = None,
    *,
    data: Data | str | os.PathLike[str] | None = None,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Assignments = (),
    out: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: TrainingCallback | None = None,
    announce: SeedCallback | None = None,
) -> TrainingOutcome | SeedsOutcome:
    """Train a model by name, once or with several seeds, or continue a training run; see ``momentseek.train``.

    With ``seeds``, each seed has a folder seed-N of ``out``. Finished seeds are not trained again (unless ``force``),
    stopped ones are continued, and seeds.json gets the means when all are finished. ``announce`` is called with each
    seed and its folder before its training.
    """
    if resume is not None:
        if model or preset or config or seeds or out or force:
            raise MomentseekError("a training run is resumed with its own model and settings; leave out other ones")
        return resume_training(resume, data=data, settings=settings, progress=progress)
    if data is None:
        raise MomentseekError(f"there are no data to train on; give a folder with a data.toml ({parameter('data')})")
    with open_data(data) as opened:
        chosen = choose_config(opened, model, preset=preset, config=config, settings=settings)
        folder = Path(out or Path("runs") / f"{chosen.model}-{chosen.data.train}")
        if seeds is None:
            return train(chosen, opened, folder, force=force, progress=progress)
        outcome = train_seeds(chosen, opened, folder, seeds, force=force, progress=progress, announce=announce)
    if outcome.complete:
        text = json.dumps(outcome.as_json(), indent=2, ensure_ascii=False)
        write_bytes(folder / "seeds.json", (text + "\n").encode())
    return outcome


def resume_training(
    folder: str | os.PathLike[str],
    *,
    data: Data | str | os.PathLike[str] | None = None,
    settings: Assignments = (),
    progress: TrainingCallback | None = None,
) -> TrainingOutcome:
    """Continue the training run of a folder to the same weights as if it had never been stopped.

    ``data`` is the new path of its data, if they were moved. Only some settings may change, such as ``steps``.
    """
    config = saved_config(Path(folder)).with_changes(settings)
    source = data or config.data.path
    if not source:
        raise MomentseekError(f"{folder}: does not say where its data are; give the folder ({parameter('data')})")
    with open_data(source) as opened:
        return train(_with_location(config, opened), opened, Path(folder), resume=True, progress=progress)


def choose_config(
    data: Data,
    model: str | None = None,
    *,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Assignments = (),
) -> TrainConfig:
    """The settings of a training run on ``data``; see ``momentseek.train``."""
    if not (preset or config or model):
        raise MomentseekError(f"no model is named; name one, such as xml, or a {parameter('preset')}")
    sections, where = settings_table(preset, config, default=data.preset)
    return _with_location(configure(sections, model, settings, where), data)


def _with_location(config: TrainConfig, data: Data) -> TrainConfig:
    """Return a copy of the config whose data path is the location of ``data``, the opened data."""
    return replace(config, data=replace(config.data, path=data.location))
