"""Checkpoints: one safetensors file with the weights and everything needed to use them or to continue training.

The file's metadata hold the model and its settings, the number of feature columns, a fingerprint of the training data,
the version of Momentseek, the number of steps and the validation score. The file is written under a temporary name and
renamed, so a checkpoint is always complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from momentseek import __version__
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size
from momentseek.core.plugins import PluginSource
from momentseek.models.captioner import CAPTIONERS, Captioner, CaptionerDims
from momentseek.models.features.data import Data, Dims
from momentseek.models.inputs import dims_of
from momentseek.models.model import CorpusModel, Network
from momentseek.models.registry import MAX_SETTING, MODELS, refuse_absurd_sizes
from momentseek.models.training.config import TrainConfig, model_source, network_spec, refuse_missing_plugin
from momentseek.models.training.folder import find_checkpoint

CHECKPOINT_KIND = "momentseek checkpoint"
OPTIMISER_PREFIX = "optimiser/"
METADATA: dict[str, tuple[type, ...]] = {
    "config": (dict,),
    "version": (str,),
    "fingerprint": (str,),
    "format": (int,),
    "plugin": (dict,),
    "dims": (dict,),
    "state": (dict,),
    "step": (int,),
    "value": (int, float, type(None)),
}
"""Keys of the metadata and the types of their values."""
UNWRITTEN = {"format": "1", "plugin": "{}"}
"""Defaults of metadata that earlier versions did not write."""
IMPORTED = "imported"
"""The fingerprint of public weights, whose training data are unknown."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedTraining:
    """What a checkpoint holds besides the model: settings, training data, and what training needs to continue."""

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
    """The tensors of the optimiser; empty for a checkpoint that training does not continue from."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The counters of the training loop."""

    @property
    def imported(self) -> bool:
        """Whether these are public weights, whose training data are unknown."""
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
        "plugin": json.dumps(source.as_dict() if (source := model_source(config.model)) else {}),
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
    """Load a checkpoint file, or the best (else the last) of a training run's folder, to the CPU."""
    found = _read(find_checkpoint(Path(path)))
    if found.config.describes:
        raise MomentseekError(
            f"{found.file}: is a checkpoint of {found.config.model}, which describes moments and finds none; "
            "`momentseek describe` uses it"
        )
    dims = _dims(found)
    return Checkpoint(model=cast(CorpusModel, _build(found, dims)), dims=dims, **found.fields())


def is_captioner(path: str | os.PathLike[str]) -> bool:
    """Whether a checkpoint is of a captioner, by its metadata alone."""
    return _read(find_checkpoint(Path(path)), weights=False).config.describes


def load_captioner(path: str | os.PathLike[str]) -> CaptionerCheckpoint:
    """Load the checkpoint of a captioner: a file, or the best (else the last) of a training run's folder."""
    found = _read(find_checkpoint(Path(path)))
    if not found.config.describes:
        raise MomentseekError(
            f"{found.file}: is a checkpoint of {found.config.model}, which describes nothing; give one of "
            f"{', '.join(CAPTIONERS)}"
        )
    return CaptionerCheckpoint(model=cast(Captioner, _build(found, _captioner_dims(found))), **found.fields())


@dataclass(frozen=True, eq=False)
class _Contents:
    """The contents of a checkpoint file."""

    file: Path
    config: TrainConfig
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def fields(self) -> dict[str, Any]:
        """The fields of ``SavedTraining``."""
        fields = {key: self.metadata[key] for key in ("fingerprint", "version", "step", "value", "state")}
        return {**fields, "config": self.config, "optimiser": self.part(optimiser=True)}

    def part(self, *, optimiser: bool) -> dict[str, Tensor]:
        """The tensors of the optimiser, or of the model, by name."""
        return {
            name.removeprefix(OPTIMISER_PREFIX): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(OPTIMISER_PREFIX) is optimiser
        }


def _build(found: _Contents, dims: Dims | CaptionerDims) -> Network:
    """Build the model in evaluation mode; an error about its weights or settings names the file."""
    try:
        weights = found.part(optimiser=False)
        refuse_absurd_sizes(found.config.network_config, weights)
        model: Network = network_spec(found.config.model).model(found.config.network_config, dims)
        model.load_state_dict(weights)
    except MomentseekError as e:
        raise MomentseekError(f"{found.file}: {e}") from None
    except Exception as e:  # torch raises a class of its own for each setting that makes no model
        why = (str(e) or type(e).__name__).splitlines()[-1].strip()
        was, here = PluginSource.of(found.metadata["plugin"]), model_source(found.config.model)
        maker = f"{was}, which is now {here}," if here and was != here else f"momentseek {found.metadata['version']},"
        raise MomentseekError(
            f"{found.file}: was made by {maker} and its weights do not fit {found.config.model} ({why}); copy it "
            "again, or train again"
        ) from None
    return model.eval()


def refuse_other_dims(trained: Checkpoint, data: Data, split: str, source: str) -> None:
    """Refuse data whose features have a different number of columns from those the model was trained on."""
    here = dims_of(data, trained.model.config, split)
    for name in ("query", "video", "subtitle"):
        was, now = getattr(trained.dims, name), getattr(here, name)
        if was != now:
            raise MomentseekError(
                f"{data.path}: {name} features have {now:,} columns and {source} was trained on {was:,}; give the data "
                "it was trained on, or extract with the same encoder"
            )


def _read(file: Path, *, weights: bool = True) -> _Contents:
    """Read and check the metadata of a file, and its tensors if ``weights``."""
    safetensors = optional_module("safetensors", "train")
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            texts = opened.metadata() or {}
            tensors: dict[str, Tensor] = {}
            if texts.get("kind") == CHECKPOINT_KIND and weights:
                check_size(f"{file}: the checkpoint", file.stat().st_size, file.stat().st_size)
                tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except MomentseekError:
        raise
    except OSError as e:
        raise MomentseekError(f"{file}: cannot be read ({e.strerror or e}); check the path") from None
    except Exception as e:  # safetensors and torch have classes of their own for damaged files
        raise MomentseekError(f"{file}: is cut off or no checkpoint ({e}); copy it again, or train again") from None
    if texts.get("kind") != CHECKPOINT_KIND:
        raise MomentseekError(f"{file}: holds tensors but is no checkpoint of momentseek; give one that `train` wrote")
    metadata = {key: _value(texts, key, kinds, file) for key, kinds in METADATA.items()}
    section = metadata["config"].get("model")
    refuse_missing_plugin(section.get("name") if isinstance(section, dict) else None, metadata["plugin"], str(file))
    _refuse_other_format(metadata, file)
    try:
        return _Contents(file, TrainConfig.of(metadata["config"], "its settings"), metadata, tensors)
    except MomentseekError as e:
        raise MomentseekError(f"{file}: {e}") from None


def _value(texts: Mapping[str, str], key: str, kinds: tuple[type, ...], file: Path) -> Any:
    """A value of the metadata: a text, or JSON of one of the types ``kinds``."""
    try:
        text = texts.get(key, UNWRITTEN[key]) if key in UNWRITTEN else texts[key]
        found = text if kinds == (str,) else json.loads(text)
        if type(found) not in kinds:
            raise TypeError
        return float(found) if key == "value" and found is not None else found
    except (KeyError, ValueError, TypeError, RecursionError, OverflowError):
        raise _unreadable(key, file) from None


def _refuse_other_format(metadata: Mapping[str, Any], file: Path) -> None:
    """Refuse a checkpoint of a model whose network has changed since."""
    section = metadata["config"].get("model")
    name = section.get("name") if isinstance(section, dict) else None
    spec = network_spec(name) if isinstance(name, str) and name in {*MODELS, *CAPTIONERS} else None
    if spec is not None and metadata["format"] != spec.format:
        raise MomentseekError(
            f"{file}: holds format {metadata['format']} of {spec.name}, written by momentseek {metadata['version']}, "
            f"and this version has format {spec.format}, another network (docs/models.md); train again"
        )


def _dims(contents: _Contents) -> Dims:
    found = contents.metadata["dims"]
    known = sorted(found) == sorted(f.name for f in fields(Dims)) and all(
        v is None or (type(v) is int and 0 < v <= MAX_SETTING) for v in found.values()
    )
    if not known or found["query"] is None:
        raise _unreadable("dims", contents.file)
    return Dims(**found)


def _captioner_dims(contents: _Contents) -> CaptionerDims:
    video, words = (contents.metadata["dims"].get(key) for key in ("video", "vocabulary"))
    sized = type(video) is int and 0 <= video <= MAX_SETTING
    if not sized or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _unreadable("dims", contents.file)
    return CaptionerDims(video, tuple(words))


def _unreadable(key: str, file: Path) -> MomentseekError:
    return MomentseekError(f"{file}: its metadata lack a readable {key!r}; train again")
