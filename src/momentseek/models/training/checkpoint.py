"""Checkpoints: one safetensors file with the weights, and everything needed to use them or to go on training.

The file's metadata say which model with which settings it is, for how many columns of features, what it was trained
on, by which version, for how many steps, and what it scored. It is one file, renamed into place: there is never half of
a checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from momentseek import __version__
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size
from momentseek.models.captioner import CAPTIONERS, Captioner, CaptionerDims
from momentseek.models.features.data import Data, Dims
from momentseek.models.inputs import dims_of
from momentseek.models.model import CorpusModel, Network
from momentseek.models.registry import MAX_SETTING, MODELS, build, refuse_absurd_sizes
from momentseek.models.training.config import TrainConfig, network_spec
from momentseek.models.training.folder import find_checkpoint

CHECKPOINT_KIND = "momentseek checkpoint"
OPTIMISER_PREFIX = "optimiser/"
IMPORTED = "imported"
"""The fingerprint of the training data of public weights, which nobody knows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedTraining:
    """What a checkpoint says beside the weights: settings, training data, and what training needs to continue."""

    config: TrainConfig
    fingerprint: str
    """Fingerprint of the data it was trained on: ``Data.fingerprint_of`` its training and validation splits."""
    version: str
    """Version of Momentseek that wrote it."""
    step: int
    """Number of training steps taken before it was written."""
    value: float | None
    """The measure on the validation split, if it was evaluated."""
    optimiser: Mapping[str, Tensor] = field(default_factory=dict)
    """The tensors of the optimiser; empty for a checkpoint that is not continued from."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The counters of the training loop."""

    @property
    def imported(self) -> bool:
        """Whether the weights are public ones, so that their training data are unknown."""
        return self.fingerprint == IMPORTED

    def was_trained_on(self, data: Data) -> bool:
        """Whether ``data`` are the data that the model was trained on."""
        return data.fingerprint_of(training_splits(self.config)) == self.fingerprint


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint(SavedTraining):
    """A trained model that finds moments."""

    model: CorpusModel
    dims: Dims


@dataclass(frozen=True, eq=False, kw_only=True)
class CaptionerCheckpoint(SavedTraining):
    """A trained captioner."""

    model: Captioner


def training_splits(config: TrainConfig) -> tuple[str, str]:
    """The training and the validation split, which decide the weights; the test split may change later."""
    return config.data.train, config.data.validate


def save_checkpoint(
    path: Path,
    model: Network,
    config: TrainConfig,
    fingerprint: str,
    step: int,
    value: float | None,
    optimiser: Mapping[str, Tensor] | None = None,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint; an existing one is replaced once the new one is complete."""
    safetensors = optional_module("safetensors.torch", "train")
    metadata = {
        "kind": CHECKPOINT_KIND,
        "version": __version__,
        "format": str(network_spec(config.model).format),
        "config": json.dumps(config.table()),
        "dims": json.dumps(asdict(model.dims)),
        "fingerprint": fingerprint,
        "step": str(step),
        "value": json.dumps(value),
        "state": json.dumps(state or {}),
    }
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    tensors |= {OPTIMISER_PREFIX + name: t.detach().cpu().contiguous() for name, t in (optimiser or {}).items()}
    write_bytes(path, safetensors.save(tensors, metadata=metadata))


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Load a checkpoint file, or the best (else the last) of a training run's folder; the model is on the CPU."""
    file = find_checkpoint(Path(path))
    metadata, tensors = _read(file)
    config = _settings(metadata, file)
    if config.describes:
        raise MomentseekError(
            f"{file}: is a checkpoint of {config.model}, which describes moments and finds none; `momentseek describe` "
            "uses it"
        )
    dims = _dims(metadata, file)
    with _fitting(config, metadata, file):
        refuse_absurd_sizes(config.model_config, _weights(tensors))
        model = build(config.model, config.settings, dims)
        model.load_state_dict(_weights(tensors))
    return Checkpoint(model=model.eval(), dims=dims, **_saved_fields(config, metadata, tensors, file))


def is_captioner(path: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint is of a captioner, by its metadata alone."""
    file = find_checkpoint(Path(path))
    return _settings(_read(file, weights=False)[0], file).describes


def load_captioner(path: str | os.PathLike[str]) -> CaptionerCheckpoint:
    """Load the checkpoint of a captioner: a file, or the best (else the last) of a training run's folder."""
    file = find_checkpoint(Path(path))
    metadata, tensors = _read(file)
    config = _settings(metadata, file)
    if not config.describes:
        raise MomentseekError(
            f"{file}: is a checkpoint of {config.model}, which describes nothing; give one of {', '.join(CAPTIONERS)}"
        )
    dims = _captioner_dims(metadata, file)
    with _fitting(config, metadata, file):
        refuse_absurd_sizes(config.captioner_config, _weights(tensors))
        model = CAPTIONERS[config.model].model(config.captioner_config, dims)
        model.load_state_dict(_weights(tensors))
    return CaptionerCheckpoint(model=model.eval(), **_saved_fields(config, metadata, tensors, file))


@contextmanager
def _fitting(config: TrainConfig, metadata: Mapping[str, str], file: Path) -> Iterator[None]:
    """Say of weights and settings that make no model which file they are of."""
    try:
        yield
    except MomentseekError as e:
        raise MomentseekError(f"{file}: {e}") from None
    except Exception as e:  # torch raises a class of its own for each setting that makes no model
        why = (str(e) or type(e).__name__).splitlines()[-1].strip()
        raise MomentseekError(
            f"{file}: was made by momentseek {_text(metadata, 'version', file)}, and its weights do not fit "
            f"{config.model} ({why}); copy it again, or train again"
        ) from None


def _saved_fields(
    config: TrainConfig, metadata: Mapping[str, str], tensors: Mapping[str, Tensor], file: Path
) -> dict[str, Any]:
    """The fields of ``SavedTraining``."""
    return {
        "config": config,
        "fingerprint": _text(metadata, "fingerprint", file),
        "version": _text(metadata, "version", file),
        "step": _whole(metadata, "step", file),
        "value": _number(metadata, "value", file),
        "optimiser": {
            n.removeprefix(OPTIMISER_PREFIX): t for n, t in tensors.items() if n.startswith(OPTIMISER_PREFIX)
        },
        "state": _mapping(metadata, "state", file),
    }


def _weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n: t for n, t in tensors.items() if not n.startswith(OPTIMISER_PREFIX)}


def refuse_other_dims(trained: Checkpoint, data: Data, split: str, source: str) -> None:
    """Refuse data whose features have another number of columns than those a model was trained on."""
    here = dims_of(data, trained.model.config, split)
    for name in ("query", "video", "subtitle"):
        was, now = getattr(trained.dims, name), getattr(here, name)
        if was != now:
            raise MomentseekError(
                f"{data.path}: {name} features have {now:,} columns and {source} was trained on {was:,}; give the data "
                "it was trained on, or extract with the same encoder"
            )


def _read(file: Path, *, weights: bool = True) -> tuple[dict[str, str], dict[str, Tensor]]:
    safetensors = optional_module("safetensors", "train")
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors: dict[str, Tensor] = {}
            if metadata.get("kind") == CHECKPOINT_KIND and weights:
                check_size(f"{file}: the checkpoint", file.stat().st_size, file.stat().st_size)
                tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except MomentseekError:
        raise
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror or e}); check the path") from None
    except Exception as e:  # safetensors and torch have classes of their own for damaged files
        raise MomentseekError(f"{file}: is cut off or no checkpoint ({e}); copy it again, or train again") from None
    if metadata.get("kind") != CHECKPOINT_KIND:
        raise MomentseekError(f"{file}: holds tensors but is no checkpoint of momentseek; give one that `train` wrote")
    return metadata, tensors


def _settings(metadata: Mapping[str, str], file: Path) -> TrainConfig:
    settings = _mapping(metadata, "config", file)
    _refuse_other_format(settings, metadata, file)
    try:
        return TrainConfig.of(settings, "its settings")
    except MomentseekError as e:
        raise MomentseekError(f"{file}: {e}") from None


def _refuse_other_format(settings: dict[str, Any], metadata: Mapping[str, str], file: Path) -> None:
    """Refuse a checkpoint of a network that this version computes otherwise."""
    section = settings.get("model")
    name = section.get("name") if isinstance(section, dict) else None
    spec = network_spec(name) if isinstance(name, str) and name in {*MODELS, *CAPTIONERS} else None
    written = _whole(metadata, "format", file) if "format" in metadata else 1
    if spec is not None and written != spec.format:
        raise MomentseekError(
            f"{file}: holds format {written} of {spec.name}, written by momentseek {_text(metadata, 'version', file)}, "
            f"and this version has format {spec.format}, another network (docs/models.md); train again"
        )


def _text(metadata: Mapping[str, str], key: str, file: Path) -> str:
    if key not in metadata:
        raise _unreadable(key, file)
    return metadata[key]


def _json(metadata: Mapping[str, str], key: str, file: Path) -> Any:
    try:
        return json.loads(_text(metadata, key, file))
    except (ValueError, RecursionError):
        raise _unreadable(key, file) from None


def _mapping(metadata: Mapping[str, str], key: str, file: Path) -> dict[str, Any]:
    found = _json(metadata, key, file)
    if not isinstance(found, dict):
        raise _unreadable(key, file)
    return found


def _whole(metadata: Mapping[str, str], key: str, file: Path) -> int:
    found = _json(metadata, key, file)
    if type(found) is not int:
        raise _unreadable(key, file)
    return found


def _number(metadata: Mapping[str, str], key: str, file: Path) -> float | None:
    found = _json(metadata, key, file)
    if found is not None and type(found) not in (int, float):
        raise _unreadable(key, file)
    try:
        return None if found is None else float(found)
    except OverflowError:
        raise _unreadable(key, file) from None


def _dims(metadata: Mapping[str, str], file: Path) -> Dims:
    found = _mapping(metadata, "dims", file)
    names = [f.name for f in fields(Dims)]
    known = sorted(found) == sorted(names) and all(
        v is None or (type(v) is int and 0 < v <= MAX_SETTING) for v in found.values()
    )
    if not known or found["query"] is None:
        raise _unreadable("dims", file)
    return Dims(**found)


def _captioner_dims(metadata: Mapping[str, str], file: Path) -> CaptionerDims:
    found = _mapping(metadata, "dims", file)
    video, words = found.get("video"), found.get("vocabulary")
    if type(video) is not int or not 0 <= video <= MAX_SETTING or not isinstance(words, list):
        raise _unreadable("dims", file)
    if not all(isinstance(word, str) for word in words):
        raise _unreadable("dims", file)
    return CaptionerDims(video, tuple(words))


def _unreadable(key: str, file: Path) -> MomentseekError:
    return MomentseekError(f"{file}: its metadata lack a readable {key!r}; train again")
