"""Checkpoints of networks that compute something else today are refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import load_checkpoint, save_checkpoint
from momentseek.models.training.presets import configure

SMALL = ["hidden=8", "max_clips=8", "longest=8", "map_layers=1", "kernel=3", "stride=1"]


def former_checkpoint(path: Path, model: str, without: tuple[str, ...]) -> Path:
    """A checkpoint as version 0.1 wrote it: no format, and settings of today unknown."""
    import json

    config = configure({}, model, SMALL)
    torch.manual_seed(0)
    save_checkpoint(path, build(model, config.settings, Dims(5, 6, None)), config, "f", 3, None)
    with safe_open(path, framework="pt") as opened:
        metadata: dict[str, Any] = dict(opened.metadata())
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    assert metadata.pop("format") == "2"
    settings = json.loads(metadata["config"])
    for name in without:
        del settings["model"][name]
    save_file(tensors, path, metadata | {"config": json.dumps(settings)})
    return path


def test_a_former_network_that_is_gone_is_refused(tmp_path: Path) -> None:
    file = former_checkpoint(tmp_path / "old.safetensors", "mmn", ("stride", "query_overlap", "follow"))
    with pytest.raises(MomentseekError, match=r"holds format 1 of mmn, written by .* has format 2, another network"):
        load_checkpoint(file)


def test_as_is_another_spelling_of_follow() -> None:
    assert configure({}, "mmn", ["as=official"]).settings["follow"] == "official"
    assert configure({}, "mmn", ["model.as=official"]).settings["follow"] == "official"
    with pytest.raises(MomentseekError, match="follow must be paper or official, not 'author'"):
        configure({}, "mmn", ["as=author"])
