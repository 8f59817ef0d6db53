"""Named configs: the papers' settings, and small ones for simulated data.

A preset is a config file that may say more: ``[models.NAME]`` has settings for one model (of a preset for any), and
``[splits.NAME]`` training settings for one training split, as TVR-Ranking trains longer on shorter lists.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.models import entry
from momentseek.training.config import TrainConfig, with_settings


def names() -> tuple[str, ...]:
    """All presets."""
    found = (f.name for f in (files("momentseek.training") / "presets").iterdir())
    return tuple(sorted(n.removesuffix(".toml") for n in found if n.endswith(".toml")))


def table(name: str) -> dict[str, Any]:
    """A preset as its file has it."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}"
        raise MomentseekError(f"there is no preset {name!r}; {hint}")
    return tomllib.loads((files("momentseek.training") / "presets" / f"{name}.toml").read_text(encoding="utf-8"))


def configure(
    preset: dict[str, Any], model: str | None, assignments: Iterable[str] = (), where: str = "config"
) -> TrainConfig:
    """A config from a preset's (or file's) sections, for a model, with ``key=value`` settings on top.

    >>> config = configure(table("tvr-ranking-reloclnet"), None, ["train=train_top20"])
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
    entry(model)
    for_model = dict(by_model.get(model, {}))
    training = for_model.pop("training", {})
    sections["model"] = {"name": model, **sections.get("model", {}), **for_model}
    sections["training"] = {**sections.get("training", {}), **training}
    assignments = list(assignments)
    split = with_settings(sections, assignments).get("data", {}).get("train")
    sections["training"] |= by_split.get(split, {})
    return TrainConfig.of(with_settings(sections, assignments), where)
