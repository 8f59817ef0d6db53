"""Named configs: the papers' settings, and small ones for simulated data.

A preset is a config file with two further kinds of sections. ``[models.NAME]`` has settings for one model, in a preset
for any model. ``[splits.NAME]`` has training settings for one training split: TVR-Ranking trains longer on shorter
lists.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import text_table
from momentseek.models.captioner import CAPTIONERS
from momentseek.models.registry import MODELS
from momentseek.models.training.config import (
    Assignments,
    DataSettings,
    TrainConfig,
    TrainingSettings,
    apply_settings,
    network_spec,
)

CAPTION_TRAINING = {"measure": "CIDEr-D", "report": ["BLEU@4", "ROUGE-L", "CIDEr-D"]}
"""Measures of captioners, for presets that are not made for one captioner."""


def preset_names() -> tuple[str, ...]:
    """The names of all presets, in alphabetical order."""
    found = (f.name for f in (files("momentseek.models.training") / "presets").iterdir())
    return tuple(sorted(n.removesuffix(".toml") for n in found if n.endswith(".toml")))


def preset_table(name: str) -> dict[str, Any]:
    """The sections of a preset, as its file has them."""
    if name not in preset_names():
        raise MomentseekError(f"there is no preset {name!r}; {did_you_mean(name, preset_names())}")
    return tomllib.loads((files("momentseek.models.training") / "presets" / f"{name}.toml").read_text(encoding="utf-8"))


def settings_table(
    preset: str | None, config: str | os.PathLike[str] | None, default: str | None = None
) -> tuple[dict[str, Any], str]:
    """The sections of a preset or a config file (else of the preset ``default``), and their name in messages."""
    if preset and config:
        raise MomentseekError(
            f"{parameter('preset')} and {parameter('config')} both give the settings; give one, and change it with "
            f"{parameter('settings')}"
        )
    if config:
        return read_toml(Path(config)), str(config)
    name = preset or default
    return (preset_table(name), f"preset {name}") if name else ({}, "config")


def configure(
    preset: dict[str, Any], model: str | None, settings: Assignments = (), where: str = "config"
) -> TrainConfig:
    """Build a model's config from the sections of a preset or a file, changed by settings such as ``lr=0.001``.

    >>> config = configure(preset_table("tvr-ranking-reloclnet"), None, ["train=train_top20"])
    >>> config.model, config.training.epochs, config.training.batch
    ('reloclnet', 200.0, 512)
    """
    sections = {k: dict(v) if isinstance(v, dict) else v for k, v in preset.items()}
    by_model, by_split = sections.pop("models", {}), sections.pop("splits", {})
    named = sections.get("model", {}).get("name")
    if model is not None and named is not None and model != named:
        raise MomentseekError(f"{where}: is for the model {named}, not for {model}; choose another preset")
    model = model or named
    if model is None:
        raise MomentseekError(f"{where}: is for any model; say which to train, such as `momentseek train xml`")
    _ = network_spec(model)  # refuses an unknown name
    for_model = dict(by_model.get(model, {}))
    if model in CAPTIONERS and named is None:  # a preset for any model is for models that find moments
        sections = {"training": CAPTION_TRAINING}
    training, data = for_model.pop("training", {}), for_model.pop("data", {})
    sections["model"] = {"name": model, **sections.get("model", {}), **for_model}
    sections["training"] = {**sections.get("training", {}), **training}
    sections["data"] = {**sections.get("data", {}), **data}
    settings = settings if isinstance(settings, Mapping) else list(settings)
    split = apply_settings(sections, settings).get("data", {}).get("train")
    sections["training"] |= by_split.get(split, {})
    return TrainConfig.of(apply_settings(sections, settings), where)


def list_settings(model: str | None = None) -> str:
    """Tables of all models and presets, or of one model's settings with their defaults."""
    if model is None:
        models = sorted([name, network_spec(name).summary] for name in (*MODELS, *CAPTIONERS))
        presets = [[name, str(preset_table(name).get("about", ""))] for name in preset_names()]
        return "\n\n".join(
            [
                text_table(["model", "what it is"], models, align="ll"),
                text_table(["preset", "what it is for"], presets, align="ll"),
                "`momentseek train MODEL --list` lists the settings of a model.",
            ]
        )
    sections = {"model": network_spec(model).config, "training": TrainingSettings, "data": DataSettings}
    rows = [
        [f"{section}.{f.name}", "" if f.default in (None, dataclasses.MISSING) else str(f.default)]
        for section, kind in sections.items()
        for f in dataclasses.fields(kind)
    ]
    return text_table(["setting", "default"], rows, align="ll")
