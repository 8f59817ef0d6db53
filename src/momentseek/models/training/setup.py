"""Prepare a training run: check its data and settings, and build its model, before the first step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from momentseek.core.errors import MomentseekError
from momentseek.core.language import resolve_parser
from momentseek.models.features.data import Data
from momentseek.models.inputs import dims_of
from momentseek.models.model import CorpusModel, Network
from momentseek.models.registry import build
from momentseek.models.tower_files import resolve_tower
from momentseek.models.training import warm_start
from momentseek.models.training.batches import Batches
from momentseek.models.training.captions import CaptionBatches, NetworkValidation, prepare_captions
from momentseek.models.training.checkpoint import (
    CaptionerCheckpoint,
    Checkpoint,
    SavedTraining,
    load_captioner,
    load_checkpoint,
    refuse_other_dims,
    training_splits,
)
from momentseek.models.training.config import TrainConfig, TrainingSettings
from momentseek.models.training.folder import LAST_CHECKPOINT, prepare_folder, saved_config
from momentseek.models.training.negatives import check_lists
from momentseek.models.training.optimisers import build_optimiser
from momentseek.models.training.pairs import ListOrder, PairOrder
from momentseek.models.training.prediction import Validation
from momentseek.models.training.processes import Processes, torch_device
from momentseek.recognition.exported.preparation import bounds

CHANGEABLE_SETTINGS = {
    "training": (
        "epochs",
        "steps",
        "minutes",
        "patience",
        "device",
        "threads",
        "cache_mb",
        "prefetch",
        "save_minutes",
        "trackers",
    ),
    "data": ("path", "test"),
}
"""Settings that may change when a training run is continued."""


@dataclass(frozen=True, eq=False)
class TrainingSetup:
    """Everything a training loop needs: model, optimiser, batches, validation and starting point."""

    config: TrainConfig
    data: Data
    model: Network
    optimiser: torch.optim.Optimizer
    order: PairOrder | ListOrder
    batches: Batches | CaptionBatches
    validation: NetworkValidation
    fingerprint: str
    """Fingerprint of the training and validation data before the first step."""
    resumed: SavedTraining | None
    """The last checkpoint of the training run that is continued, if any."""
    begun: dict[str, Any] | None = None
    """Description of the checkpoint whose weights training begins from, if any."""
    scorer: CorpusModel | None = None
    """Model of the checkpoint in ``begun``, if hard negatives are drawn by its scores."""


def _order(batches: Batches, training: TrainingSettings) -> PairOrder | ListOrder:
    """The order in which training draws its pairs."""
    if training.draw == "lists":
        if batches.whole:
            raise MomentseekError("training: this model learns from all windows of a query at once; set draw=pairs")
        return ListOrder(batches.pairs, training.batch, training.list_queries, training.seed)
    lengths = batches.lengths if training.alike > 1 else None
    return PairOrder(
        batches.drawn_videos, training.batch, training.pairs_per_video, training.seed, lengths, training.alike
    )


def prepare_training(
    config: TrainConfig, data: Data, out: Path, resume: bool, processes: Processes, force: bool = False
) -> TrainingSetup:
    """Check data, settings and folder, then build the model, its optimiser and its batches."""
    config = resolve_config(config)
    training = config.training
    if training.threads is not None:
        torch.set_num_threads(training.threads)
    model: Network
    batches: Batches | CaptionBatches
    validation: NetworkValidation
    order: PairOrder | ListOrder
    if config.describes:
        model, batches, validation = prepare_captions(config, data, used_splits(config))
        order = PairOrder(np.arange(len(batches)), training.batch, 1, training.seed)
    else:
        model, validation = check_training(config, data)
        batches = Batches(data, data.split(config.data.train), model.config, training, whole=model.whole_queries)
        order = _order(batches, training)
    fingerprint = data.fingerprint_of(training_splits(config))
    last = _last(config, data, out) if resume else None
    if isinstance(last, Checkpoint):
        refuse_other_dims(last, data, config.data.train, str(out / LAST_CHECKPOINT))
    if last is not None:
        try:
            model.load_state_dict(last.model.state_dict())
        except RuntimeError:
            raise MomentseekError(
                f"{out}: was started by a version with a different network for {config.model}; train in another folder"
            ) from None
    begun, scorer = None, None
    if isinstance(model, CorpusModel) and isinstance(batches, Batches):
        begun, scorer = _start_from(config, data, model, out, last)
        if last is None and begun is None:
            model.prepare(batches.queries())
    model.to(torch_device(training.device))
    processes.share_weights(model)
    if processes.first:
        prepare_folder(out, config, resume, force)
    return TrainingSetup(
        config=config,
        data=data,
        model=model,
        optimiser=build_optimiser(model, training),
        order=order,
        batches=batches,
        validation=validation,
        fingerprint=fingerprint,
        resumed=last,
        begun=begun,
        scorer=scorer,
    )


def check_training(config: TrainConfig, data: Data, *, stages: bool = True) -> tuple[CorpusModel, Validation]:
    """Return the untrained model and its validation, or raise an error if training cannot start; writes nothing.

    ``stages=False`` skips the checks that need a first stage, for one that is not trained yet.
    """
    data.use(config.model_config.modalities)
    data.check(used_splits(config))
    _ = data.fingerprint_of(used_splits(config))  # cached now: the report needs that of the data before the first step
    dims = dims_of(data, config.model_config, config.data.train)
    torch.manual_seed(config.training.seed)
    model = build(config.model, config.settings, dims)
    validation = Validation(config, data)
    if stages or config.data.first_stage is None:
        validation.check(model)
    model.check_lengths(_fitted_lengths(config, data, model))
    warm_start.check_hard_negatives(config, model)
    warm_start.check_later_stage(config, model)
    check_lists(config, model)
    return model, validation


def _fitted_lengths(config: TrainConfig, data: Data, model: CorpusModel) -> dict[str, int]:
    """Number of clips per video, after fitting to the model, of all videos of the used splits."""
    names = {video for split in used_splits(config) for video in data.split(split).truth.videos}
    most, how = model.config.preparation.rows, model.config.fit
    return {name: len(bounds(data.rows(name), most, how)) - 1 for name in sorted(names)}


def used_splits(config: TrainConfig) -> list[str]:
    """The splits that a training run reads: training, validation and, if it has one, test."""
    return [s for s in (config.data.train, config.data.validate, config.data.test) if s]


def resolve_config(config: TrainConfig) -> TrainConfig:
    """The config as config.toml stores it: with absolute paths, {seed} in them filled in, and a chosen query parser."""
    settings = dict(config.settings)
    if getattr(config.network_config, "parse", "") == "auto":
        settings["parse"] = resolve_parser("auto")
    if tower := getattr(config.network_config, "tower", None):
        settings["tower"] = resolve_tower(tower)
    source = config.data
    path = str(Path(source.path).resolve()) if source.path else ""
    seed = str(config.training.seed)
    others = {
        name: str(Path(value.replace("{seed}", seed)).resolve())
        for name in ("first_stage", "lists", "begin")
        if (value := getattr(source, name))
    }
    return replace(config, settings=settings, data=replace(source, path=path, **others))


def _start_from(
    config: TrainConfig, data: Data, model: CorpusModel, out: Path, last: SavedTraining | None
) -> tuple[dict[str, Any] | None, CorpusModel | None]:
    """Return the description of the checkpoint that training begins from, and its model if that scores hard negatives.

    Unless training continues from ``last``, the weights are loaded into ``model``.
    """
    source, wanted = config.data.begin, warm_start.uses_hard_negatives(config)
    if source is None:
        return None, None
    if last is not None and not wanted:
        return last.state.get("begun"), None
    found = warm_start.load_initial_checkpoint(config, model, out)
    refuse_other_dims(found, data, config.data.train, source)
    begun = warm_start.start_description(found, source)
    if last is None:
        model.load_state_dict(found.model.state_dict())
    else:
        warm_start.refuse_other_weights(last.state.get("begun"), begun["weights"], config, out)
    return begun, found.model if wanted else None


def _last(config: TrainConfig, data: Data, out: Path) -> Checkpoint | CaptionerCheckpoint | None:
    """The checkpoint to continue from; None if training stopped before it wrote one."""
    _refuse_other_settings(config, out)
    if not (out / LAST_CHECKPOINT).is_file():
        return None
    last = (load_captioner if config.describes else load_checkpoint)(out / LAST_CHECKPOINT)
    if not last.was_trained_on(data):
        raise MomentseekError(
            f"{out / LAST_CHECKPOINT}: was trained on other data than {data.path}; give the same data"
        )
    return last


def _refuse_other_settings(config: TrainConfig, out: Path) -> None:
    """Refuse to continue a training run with other settings than those in ``CHANGEABLE_SETTINGS``."""
    before = resolve_config(saved_config(out)).table()
    for section, values in config.table().items():
        for key, value in values.items():
            old = before[section].get(key)
            if key not in CHANGEABLE_SETTINGS.get(section, ()) and old != value:
                raise MomentseekError(
                    f"{out}: was begun with {section}.{key}={old} and not {value}; continue with the same settings, "
                    "or train in another folder"
                )
