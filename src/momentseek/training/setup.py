"""Everything a training run needs, made and checked before the first step."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.features.data import Data
from momentseek.language.roles import resolve_parser
from momentseek.models import CorpusModel, build
from momentseek.training import beginning, checkpoint
from momentseek.training.batches import Batches, dims_of
from momentseek.training.checkpoint import Checkpoint
from momentseek.training.config import TrainConfig, read
from momentseek.training.optimisers import optimiser
from momentseek.training.order import Order
from momentseek.training.processes import Processes
from momentseek.training.validation import Validation

CONFIG, LAST, BEST, REPORT = "config.toml", "last.safetensors", "best.safetensors", "report.json"
CHANGEABLE = {
    "training": ("epochs", "steps", "minutes", "patience", "device", "threads", "cache_mb", "prefetch", "save_minutes"),
    "data": ("path", "test"),
}
"""Settings that may differ when a run goes on; the others would make it another run."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Ready to train."""

    config: TrainConfig
    data: Data
    model: CorpusModel
    optimiser: torch.optim.Optimizer
    order: Order
    batches: Batches
    validation: Validation
    fingerprint: str
    """Of the data the model is trained on, as they were before the first step."""
    resumed: Checkpoint | None
    begun: dict[str, Any] | None = None
    """The checkpoint whose weights it begins from, if any."""
    scorer: CorpusModel | None = None
    """That checkpoint's model, if hard negatives are drawn by its scores."""


def prepare(
    config: TrainConfig, data: Data, out: Path, resume: bool, processes: Processes, force: bool = False
) -> Prepared:
    """Check data, settings and folder; build the model and what trains it."""
    config = located(config)
    training = config.training
    if training.threads is not None:
        torch.set_num_threads(training.threads)
    data.use(config.model_config.modalities)
    data.check(splits_of(config))
    _ = data.fingerprint_of(splits_of(config))  # the report's: of the data before the first step, too
    split = data.split(config.data.train)
    dims = dims_of(data, config.model_config, config.data.train)
    torch.manual_seed(training.seed)
    model = build(config.model, config.settings, dims)
    validation = Validation(config, data)
    validation.check(model)
    beginning.check_hard_negatives(config, model)
    batches = Batches(data, split, model.config, training)
    order = Order(
        batches.pairs.video,
        training.batch,
        training.pairs_per_video,
        training.seed,
        batches.lengths if training.alike > 1 else None,
        training.alike,
    )
    fingerprint = data.fingerprint_of(checkpoint.trained_on(config))
    last = _last(config, data, out) if resume else None
    if last is not None:
        refuse_other_dims(last, data, config.data.train, str(out / LAST))
        model.load_state_dict(last.model.state_dict())
    begun, scorer = _beginning(config, data, model, out, last)
    if last is None and begun is None:
        model.prepare(batches.queries())
    model.to(device(training.device))
    processes.share_weights(model)
    if processes.first:
        _folder(out, config, resume, force)
    return Prepared(config, data, model, optimiser(model, training), order, batches, validation, fingerprint, last,
                    begun, scorer)  # fmt: skip


def splits_of(config: TrainConfig) -> list[str]:
    """The splits a run uses."""
    return [s for s in (config.data.train, config.data.validate, config.data.test) if s]


def located(config: TrainConfig) -> TrainConfig:
    """The config as a run keeps it: absolute paths, {seed} of ``begin`` filled in, and which parser reads queries."""
    settings = dict(config.settings)
    if getattr(config.model_config, "parse", "") == "auto":
        settings["parse"] = resolve_parser("auto")
    source = config.data
    path = str(Path(source.path).resolve()) if source.path else ""
    first_stage = str(Path(source.first_stage).resolve()) if source.first_stage else None
    begin = str(Path(source.begin.replace("{seed}", str(config.training.seed))).resolve()) if source.begin else None
    return replace(config, settings=settings, data=replace(source, path=path, first_stage=first_stage, begin=begin))


def device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` takes a GPU if there is one."""
    if name == "auto":
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(name)
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError) as e:
        raise MomentseekError(f"device {name!r} cannot be used ({str(e).splitlines()[0]}); set device=cpu") from None
    return found


def refuse_other_dims(trained: Checkpoint, data: Data, split: str, source: str) -> None:
    """Refuse data whose features have other columns than those a model was trained on."""
    here = dims_of(data, trained.model.config, split)
    for name in ("query", "video", "subtitle"):
        was, now = getattr(trained.dims, name), getattr(here, name)
        if was != now:
            raise MomentseekError(
                f"{data.path}: {name} features have {now:,} columns and {source} was trained on {was:,}; give the data "
                "it was trained on, or extract with the same encoder"
            )


def saved_config(out: Path) -> TrainConfig:
    """The config of a run's folder."""
    if not (out / CONFIG).is_file():
        raise MomentseekError(f"{out}: holds no training run ({CONFIG}); check the folder")
    return TrainConfig.of(read(out / CONFIG), str(out / CONFIG))


def _beginning(
    config: TrainConfig, data: Data, model: CorpusModel, out: Path, last: Checkpoint | None
) -> tuple[dict[str, Any] | None, CorpusModel | None]:
    """Where the run begins (or began), its weights loaded if this is the first step, and who scores negatives."""
    source, wanted = config.data.begin, beginning.draws(config)
    if source is None:
        return None, None
    if last is not None and not wanted:
        return last.state.get("begun"), None
    found = beginning.load(config, model, out)
    refuse_other_dims(found, data, config.data.train, source)
    begun = beginning.described(found, source)
    if last is None:
        model.load_state_dict(found.model.state_dict())
    else:
        beginning.refuse_other_weights(last.state.get("begun"), begun["weights"], config, out)
    return begun, found.model if wanted else None


def _last(config: TrainConfig, data: Data, out: Path) -> Checkpoint | None:
    """The checkpoint to go on from; None if the run was stopped before its first."""
    before = located(saved_config(out)).table()
    for section, values in config.table().items():
        for key, value in values.items():
            old = before[section].get(key)
            if key not in CHANGEABLE.get(section, ()) and old != value:
                raise MomentseekError(
                    f"{out}: was begun with {section}.{key}={old} and not {value}; go on with the same settings, or "
                    "begin a run in another folder"
                )
    if not (out / LAST).is_file():
        return None
    last = checkpoint.load(out / LAST)
    if not last.made_from(data):
        raise MomentseekError(f"{out / LAST}: was trained on other data than {data.path}; give the same data")
    return last


def _folder(out: Path, config: TrainConfig, resume: bool, force: bool) -> None:
    mine = [*(out / n for n in (CONFIG, LAST, BEST, REPORT, "log.csv")), *out.glob("events.out.tfevents.*")]
    if not resume and any(p.exists() for p in mine):
        if not force:
            raise MomentseekError(
                f"{out}: holds a training run already; go on with it (--resume), choose another folder, or --force"
            )
        for path in mine:
            path.unlink(missing_ok=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(out).free
    except OSError as e:
        raise MomentseekError(f"{out}: cannot be made ({e.strerror}); choose another folder") from None
    if free < 100e6:
        raise MomentseekError(f"{out}: the disk has only {free / 1e6:.0f} MB left; free some, or choose another")
    (out / REPORT).unlink(missing_ok=True)
    write_bytes(out / CONFIG, config.text().encode())
