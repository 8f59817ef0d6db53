"""Checkpoints: one safetensors file with the weights, and everything needed to use them or to go on training.

The file's metadata say which model with which settings it is, for how many columns of features, what it was trained
on, by which version, for how many steps, and what it scored. It is one file, renamed into place: there is never half of
a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from momentseek import __version__
from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.features.data import Data
from momentseek.models import CorpusModel, Dims, build
from momentseek.optional import optional_module
from momentseek.training.config import TrainConfig

KIND = "momentseek checkpoint"
OPTIMISER = "optimiser/"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained model and where it comes from."""

    model: CorpusModel
    config: TrainConfig
    dims: Dims
    fingerprint: str
    """Of the data it was trained on (``Data.fingerprint_of`` its training and validation split)."""
    version: str
    step: int
    value: float | None
    """What it scored on the validation split, if it was measured."""
    optimiser: Mapping[str, Tensor] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    """What training needs to go on."""

    def made_from(self, data: Data) -> bool:
        """Whether these are the data it was trained on."""
        return data.fingerprint_of(trained_on(self.config)) == self.fingerprint


def trained_on(config: TrainConfig) -> tuple[str, str]:
    """The splits that make a model what it is; the test split may change when a run goes on."""
    return config.data.train, config.data.validate


def save(
    path: Path,
    model: CorpusModel,
    config: TrainConfig,
    fingerprint: str,
    step: int,
    value: float | None,
    optimiser: Mapping[str, Tensor] | None = None,
    state: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint; one that is there already is replaced when the new one is complete."""
    safetensors = optional_module("safetensors.torch", "train")
    metadata = {
        "kind": KIND,
        "version": __version__,
        "config": json.dumps(config.table()),
        "dims": json.dumps(asdict(model.dims)),
        "fingerprint": fingerprint,
        "step": str(step),
        "value": json.dumps(value),
        "state": json.dumps(state or {}),
    }
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    tensors |= {OPTIMISER + name: t.detach().cpu().contiguous() for name, t in (optimiser or {}).items()}
    write_bytes(path, safetensors.save(tensors, metadata=metadata))


def load(path: str | Path) -> Checkpoint:
    """The checkpoint of a file, or the best (else the last) of a run's folder; the model is on the CPU, to be used."""
    file = find(Path(path))
    metadata, tensors = _read(file)
    config = TrainConfig.of(_mapping(metadata, "config", file), str(file))
    dims = _dims(metadata, file)
    model = build(config.model, config.settings, dims)
    weights = {n: t for n, t in tensors.items() if not n.startswith(OPTIMISER)}
    try:
        model.load_state_dict(weights)
    except RuntimeError as e:
        why = str(e).splitlines()[-1].strip()
        raise MomentseekError(
            f"{file}: was made by momentseek {_text(metadata, 'version', file)}, and its weights do not fit "
            f"{config.model} ({why})"
        ) from None
    model.eval()
    return Checkpoint(
        model,
        config,
        dims,
        _text(metadata, "fingerprint", file),
        _text(metadata, "version", file),
        _whole(metadata, "step", file),
        _number(metadata, "value", file),
        {n.removeprefix(OPTIMISER): t for n, t in tensors.items() if n.startswith(OPTIMISER)},
        _mapping(metadata, "state", file),
    )


def find(path: Path) -> Path:
    """The checkpoint file that a path means: itself, or ``best`` (else ``last``) of a run's folder."""
    if path.is_dir():
        for name in ("best.safetensors", "last.safetensors"):
            if (path / name).is_file():
                return path / name
        raise MomentseekError(f"{path}: holds no checkpoint (best.safetensors); is it the folder of a training run?")
    if not path.is_file():
        raise MomentseekError(f"{path}: there is no such checkpoint; give a .safetensors file or a run's folder")
    return path


def _read(file: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    safetensors = optional_module("safetensors", "train")
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors: dict[str, Tensor] = {}
            if metadata.get("kind") == KIND:
                tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror or e})") from None
    except safetensors.SafetensorError as e:
        raise MomentseekError(f"{file}: is cut off or no checkpoint ({e}); copy it again, or train again") from None
    if metadata.get("kind") != KIND:
        raise MomentseekError(f"{file}: holds tensors but is no checkpoint of momentseek; give one that `train` wrote")
    return metadata, tensors


def _text(metadata: Mapping[str, str], key: str, file: Path) -> str:
    if key not in metadata:
        raise _unreadable(key, file)
    return metadata[key]


def _json(metadata: Mapping[str, str], key: str, file: Path) -> Any:
    try:
        return json.loads(_text(metadata, key, file))
    except ValueError:
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
    return None if found is None else float(found)


def _dims(metadata: Mapping[str, str], file: Path) -> Dims:
    found = _mapping(metadata, "dims", file)
    names = [f.name for f in fields(Dims)]
    known = sorted(found) == sorted(names) and all(type(v) is int or v is None for v in found.values())
    if not known or found["query"] is None:
        raise _unreadable("dims", file)
    return Dims(**found)


def _unreadable(key: str, file: Path) -> MomentseekError:
    return MomentseekError(f"{file}: its metadata lack a readable {key!r}; train again")


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Whether two models have the same weights, bit for bit."""
    one, two = a.state_dict(), b.state_dict()
    return one.keys() == two.keys() and all(torch.equal(t, two[n]) for n, t in one.items())
