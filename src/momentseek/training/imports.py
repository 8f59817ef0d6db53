"""A training run made of public weights, for ``predict``, ``explain``, ``export`` and further training (``begin``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.models.public import PUBLIC_MODELS, load_public
from momentseek.models.public.files import read_public_weights
from momentseek.training.checkpoint import IMPORTED, save_checkpoint
from momentseek.training.config import Assignments, TrainConfig, apply_settings
from momentseek.training.folder import BEST_CHECKPOINT, prepare_folder


@dataclass(frozen=True)
class ImportReport:
    """What became of public weights."""

    out: Path
    model: str
    source: str
    """The public implementation: repository, file and class."""
    parameters: int
    settings: Mapping[str, Any]
    """The model's settings that are not defaults."""
    assumed: Mapping[str, Any]
    """Those of them that the weights do not tell: the authors' values."""
    skipped: tuple[str, ...]
    """Public names that have no place in the model."""


def import_checkpoint(
    file: Path, model: str, out: Path, settings: Assignments = (), *, force: bool = False
) -> ImportReport:
    """Turn weights under public names into the folder of a training run; ``force`` replaces a run that is there."""
    if model not in PUBLIC_MODELS:
        load_public(model, {})  # says which there are
    asked = apply_settings({"model": {"name": model}}, settings)
    own = {key: value for key, value in asked["model"].items() if key != "name"}
    tensors = read_public_weights(file)
    try:
        loaded = load_public(model, tensors, own)
    except MomentseekError as e:
        raise MomentseekError(f"{file}: {e}") from None
    except Exception as e:  # torch raises a class of its own for each setting that makes no model
        why = (str(e) or type(e).__name__).splitlines()[0].strip()
        raise MomentseekError(f"{file}: its weights make no {model} ({why}); check the settings") from None
    spec = PUBLIC_MODELS[model]
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
