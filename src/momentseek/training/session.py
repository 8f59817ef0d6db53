"""Training by name: a model, its data and its settings in, a finished training run out.

What ``momentseek train`` and ``momentseek.train`` share. ``loop.train`` does the work once the settings are known.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.features.data import Data, open_data
from momentseek.training.config import Assignments, TrainConfig
from momentseek.training.folder import saved_config
from momentseek.training.loop import train
from momentseek.training.presets import configure, settings_table
from momentseek.training.progress import TrainingCallback, TrainingOutcome
from momentseek.training.seeds import SeedCallback, SeedsOutcome, train_seeds


def train_model(
    model: str | None = None,
    *,
    data: Data | str | os.PathLike[str],
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Assignments = (),
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: TrainingCallback | None = None,
) -> TrainingOutcome:
    """Train a model on the data of a folder (one with a data.toml), and keep its best checkpoint.

    The settings are those of ``preset``, of the TOML file ``config``, or else of the preset that the data name, changed
    by ``settings``: a mapping such as ``{"lr": 5e-4}``, or texts such as ``"lr=5e-4"``. The training run goes to the
    folder ``out`` (default: runs/MODEL-SPLIT); ``force`` replaces one that is there. Ctrl-C stops after a step and
    saves; ``resume_training`` continues.
    """
    with open_data(data) as opened:
        chosen = choose_config(opened, model, preset=preset, config=config, settings=settings)
        return train(chosen, opened, _folder(chosen, out), force=force, progress=progress)


def train_model_with_seeds(
    model: str | None = None,
    *,
    seeds: int,
    data: Data | str | os.PathLike[str],
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Assignments = (),
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: TrainingCallback | None = None,
    announce: SeedCallback | None = None,
) -> SeedsOutcome:
    """Train a model as ``train_model`` does, once for each of ``seeds`` seeds, each in a folder seed-N of ``out``.

    Seeds that are finished are not trained again (unless ``force``), and one that was stopped is continued; seeds.json
    gets the means when all are finished. ``announce`` is called with each seed and its folder before it is trained.
    """
    with open_data(data) as opened:
        chosen = choose_config(opened, model, preset=preset, config=config, settings=settings)
        folder = _folder(chosen, out)
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

    ``data`` is where its data are now, if they were moved. Of its settings only limits may change, such as ``steps``.
    """
    config = saved_config(Path(folder)).with_changes(settings)
    source = data or config.data.path
    if not source:
        raise MomentseekError(f"{folder}: does not say where its data are; give the folder (`data`)")
    with open_data(source) as opened:
        return train(_at(config, opened), opened, Path(folder), resume=True, progress=progress)


def choose_config(
    data: Data,
    model: str | None = None,
    *,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Assignments = (),
) -> TrainConfig:
    """The settings of a training run on ``data``; see ``train_model``."""
    if not (preset or config or model):
        raise MomentseekError("no model is named; name one, such as xml, or a `preset`")
    sections, where = settings_table(preset, config, default=data.preset)
    return _at(configure(sections, model, settings, where), data)


def _at(config: TrainConfig, data: Data) -> TrainConfig:
    """The config with the place of its data."""
    return replace(config, data=replace(config.data, path=data.location))


def _folder(config: TrainConfig, out: str | os.PathLike[str] | None) -> Path:
    return Path(out or Path("runs") / f"{config.model}-{config.data.train}")
