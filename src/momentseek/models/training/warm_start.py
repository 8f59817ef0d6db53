"""Start training from other weights: from a checkpoint (second stage, fine-tuning), or from public weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from momentseek.core.errors import MomentseekError, parameter
from momentseek.models.model import CorpusModel
from momentseek.models.public.loading import (
    OPTIONS_FILE,
    load_public,
    read_options,
    read_public_weights,
    read_public_words,
)
from momentseek.models.public.weights import PUBLIC_MODELS
from momentseek.models.training.checkpoint import IMPORTED, Checkpoint, load_checkpoint, save_checkpoint
from momentseek.models.training.config import Assignments, TrainConfig, apply_settings
from momentseek.models.training.folder import BEST_CHECKPOINT, find_checkpoint, is_checkpoint, prepare_folder


def check_hard_negatives(config: TrainConfig, model: CorpusModel) -> None:
    """Refuse hard negatives for a model that does not learn from them, or without a model to score them."""
    if not uses_hard_negatives(config):
        return
    if not model.hard_negatives:
        raise MomentseekError(
            f"{config.model} does not learn from hard negatives; train crocs, or leave out hard_videos and hard_queries"
        )
    if config.data.begin is None:
        raise MomentseekError(
            "hard negatives are drawn by the scores of a trained model; name its checkpoint (begin=PATH), or leave out "
            "hard_videos and hard_queries"
        )


def check_later_stage(config: TrainConfig, model: CorpusModel) -> None:
    """Refuse a later stage of training without a checkpoint of the earlier one."""
    if model.goes_on and config.data.begin is None:
        raise MomentseekError(
            f"{config.model} with stage={getattr(model.config, 'stage', '')} continues an earlier stage; name its "
            "checkpoint (begin=PATH), or set stage=all"
        )


def uses_hard_negatives(config: TrainConfig) -> bool:
    """Whether training draws hard negatives."""
    return bool(config.training.hard_videos or config.training.hard_queries)


def load_initial_checkpoint(config: TrainConfig, model: CorpusModel, out: Path) -> Checkpoint:
    """Load the checkpoint that training begins from; its weights must fit the model to be trained."""
    source = Path(config.data.begin or "")
    file = find_checkpoint(source)
    if file.resolve().parent == out.resolve():
        raise MomentseekError(
            f"{out}: cannot begin from the checkpoint it replaces; train in another folder ({parameter('out')})"
        )
    found = load_checkpoint(file)
    kinds = type(found.model), type(model)
    if not (issubclass(*kinds) or issubclass(*reversed(kinds))):
        raise MomentseekError(
            f"{source}: is a checkpoint of {found.config.model}, and {config.model} cannot begin from it"
        )
    theirs, ours = ({n: t.shape for n, t in m.state_dict().items()} for m in (found.model, model))
    if theirs != ours:
        raise MomentseekError(
            f"{source}: its weights do not fit the model to be trained ({_difference(found, model)}); use its settings"
        )
    return found


def start_description(found: Checkpoint, source: str) -> dict[str, Any]:
    """Describe the checkpoint that training begins from, for the training report."""
    return {
        "path": source,
        "model": found.config.model,
        "step": found.step,
        "value": found.value,
        "weights": weights_digest(found.model),
    }


def refuse_other_weights(begun: Mapping[str, Any] | None, weights: str, config: TrainConfig, out: Path) -> None:
    """Refuse a checkpoint whose weights differ from those that a training run began from."""
    if (begun or {}).get("weights") != weights:
        why = ", so other negatives would be drawn" if uses_hard_negatives(config) else ""
        raise MomentseekError(
            f"{config.data.begin}: has other weights than {out} began from{why}; put the checkpoint back, or train "
            "in another folder"
        )


def source_digest(source: Path) -> str:
    """A digest of a first stage: of a checkpoint's weights, or of the bytes of a run's file."""
    if is_checkpoint(source):
        return weights_digest(load_checkpoint(source).model)
    try:
        return hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    except OSError as e:
        raise MomentseekError(f"{source}: cannot be read ({e.strerror}); name a checkpoint or a run") from None


def weights_digest(model: CorpusModel) -> str:
    """A digest of a model's weights with their names, types and shapes, independent of their order."""
    hashed = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]


def _difference(found: Checkpoint, model: CorpusModel) -> str:
    theirs, ours = asdict(found.model.config), asdict(model.config)
    for name in sorted(theirs.keys() & ours.keys()):
        if theirs[name] != ours[name]:
            return f"{name}={theirs[name]} there and {ours[name]} here"
    for name in ("query", "video", "subtitle"):
        one, two = getattr(found.dims, name), getattr(model.dims, name)
        if one != two:
            return f"{one} columns of {name} features there and {two} here"
    return "the layers differ"


@dataclass(frozen=True)
class ImportReport:
    """The result of an import of public weights."""

    out: Path
    model: str
    source: str
    """The public implementation: repository, file and class."""
    parameters: int
    settings: Mapping[str, Any]
    """The model's settings that are not defaults."""
    assumed: Mapping[str, Any]
    """Those of ``settings`` that cannot be read from the weights: the authors' values."""
    skipped: tuple[str, ...]
    """Names of public tensors that the model does not use."""


def import_checkpoint(
    file: Path, model: str, out: Path, settings: Assignments = (), *, words: Path | None = None, force: bool = False
) -> ImportReport:
    """Convert public weights to the folder of a training run; ``force`` replaces an existing run there.

    ``words`` names the vocabulary file, for a model that has one.
    """
    if model not in PUBLIC_MODELS:
        load_public(model, {})  # raises an error that lists the known models
    asked = apply_settings({"model": {"name": model}}, settings)
    spec = PUBLIC_MODELS[model]
    own = {key: value for key, value in asked["model"].items() if key != "name"}
    own = (spec.options(read_options(file.parent / OPTIONS_FILE)) if spec.options else {}) | own
    tensors, named = read_public_weights(file), () if words is None else read_public_words(words)
    try:
        loaded = load_public(model, tensors, own, named)
    except MomentseekError as e:
        raise MomentseekError(f"{file}: {e}") from None
    except Exception as e:  # torch raises a class of its own for each setting that makes no model
        why = (str(e) or type(e).__name__).splitlines()[0].strip()
        raise MomentseekError(f"{file}: its weights do not fit {model} ({why}); check the settings") from None
    config = TrainConfig.of(
        {
            "model": {"name": model, **loaded.settings},
            "training": {**spec.training, **asked.get("training", {})},
            "data": asked.get("data", {}),
        },
        "the settings",
    )
    prepare_folder(out, config, resume=False, force=force)
    save_checkpoint(out / BEST_CHECKPOINT, loaded.model, config, IMPORTED, 0, None)
    count = sum(parameter.numel() for parameter in loaded.model.parameters())
    return ImportReport(out, model, spec.source, count, loaded.settings, loaded.assumed, loaded.skipped)
