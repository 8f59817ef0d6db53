"""Beginning from the weights of another run: a second stage (CroCs, section 6.2), or a finer tuning of any model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.models import CorpusModel
from momentseek.training import checkpoint
from momentseek.training.checkpoint import Checkpoint
from momentseek.training.config import TrainConfig


def check_hard_negatives(config: TrainConfig, model: CorpusModel) -> None:
    """Refuse hard negatives that a model would not learn from, or that nothing could be drawn by."""
    if not draws(config):
        return
    if not model.hard_negatives:
        raise MomentseekError(
            f"{config.model} does not learn from hard negatives; train crocs, or leave out hard_videos and hard_queries"
        )
    if config.data.begin is None:
        raise MomentseekError(
            "hard negatives are drawn by the scores of a trained model; name its run (--set begin=RUN), or leave out "
            "hard_videos and hard_queries"
        )


def draws(config: TrainConfig) -> bool:
    """Whether hard negatives are drawn."""
    return bool(config.training.hard_videos or config.training.hard_queries)


def load(config: TrainConfig, model: CorpusModel, out: Path) -> Checkpoint:
    """The checkpoint to begin from; refused if its weights are not of the model that is trained."""
    source = Path(config.data.begin or "")
    file = checkpoint.find(source)
    if file.resolve().parent == out.resolve():
        raise MomentseekError(f"{out}: cannot begin from the checkpoint it replaces; train in another folder (--out)")
    found = checkpoint.load(file)
    kinds = type(found.model), type(model)
    if not (issubclass(*kinds) or issubclass(*reversed(kinds))):
        raise MomentseekError(
            f"{source}: is a checkpoint of {found.config.model}, and {config.model} cannot begin there"
        )
    theirs, ours = ({n: t.shape for n, t in m.state_dict().items()} for m in (found.model, model))
    if theirs != ours:
        raise MomentseekError(
            f"{source}: its weights do not fit the model that is trained ({_difference(found, model)}); set the same"
        )
    return found


def described(found: Checkpoint, source: str) -> dict[str, Any]:
    """What a run's report says of where it began."""
    return {
        "path": source,
        "model": found.config.model,
        "step": found.step,
        "value": found.value,
        "weights": digest(found.model),
    }


def refuse_other_weights(begun: Mapping[str, Any] | None, weights: str, config: TrainConfig, out: Path) -> None:
    """Refuse a checkpoint whose weights are not those that a run says it began from."""
    if (begun or {}).get("weights") != weights:
        why = ", so other negatives would be drawn" if draws(config) else ""
        raise MomentseekError(
            f"{config.data.begin}: has other weights than {out} began from{why}; put the checkpoint back, or begin "
            "a run in another folder"
        )


def digest_of(source: Path) -> str:
    """Tells a first stage from others: by its weights, or, of a file of predictions, by its bytes."""
    if source.is_dir() or source.suffix == ".safetensors":
        return digest(checkpoint.load(source).model)
    try:
        return hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    except OSError as e:
        raise MomentseekError(f"{source}: cannot be read ({e.strerror}); name a checkpoint or a run") from None


def digest(model: CorpusModel) -> str:
    """Tells weights from others.

    The order of names does not count, types and shapes do.
    """
    told = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        told.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        told.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return told.hexdigest()[:16]


def _difference(found: Checkpoint, model: CorpusModel) -> str:
    theirs, ours = asdict(found.model.config), asdict(model.config)
    for name in sorted(theirs.keys() & ours.keys()):
        if theirs[name] != ours[name]:
            return f"{name}={theirs[name]} there and {ours[name]} here"
    for name in ("query", "video", "subtitle"):
        one, two = getattr(found.dims, name), getattr(model.dims, name)
        if one != two:
            return f"{one} columns of {name} features there and {two} here"
    return "it has other layers"
