"""Which runs a debias report takes from folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from momentseek.benchmarks.debias.training import checkpoints
from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import save_checkpoint
from momentseek.models.training.presets import configure


def run(folder: Path, *names: str) -> Path:
    """A run's folder with checkpoints of random weights."""
    folder.mkdir(parents=True)
    config = configure({}, "tan2d", ["hidden=8", "max_clips=8", "longest=8", "map_layers=1"])
    torch.manual_seed(0)
    model = build("tan2d", config.settings, Dims(6, 6, None))
    for name in names:
        save_checkpoint(folder / name, model, config, "", 1200, None)
    return folder


def test_stopped_runs_are_not_compared(tmp_path: Path) -> None:
    for seed in (0, 10, 2):
        folder = run(tmp_path / "my runs" / f"seed-{seed}", "best.safetensors", "last.safetensors")
        (folder / "report.json").write_text("{}")
    found = checkpoints(tmp_path / "my runs")
    assert [path.parent.name for path in found] == ["seed-0", "seed-2", "seed-10"]
    (tmp_path / "my runs" / "seed-2" / "report.json").unlink()
    with pytest.raises(MomentseekError, match=r"seed-2: was stopped at step 1,200; .* --resume '.*my runs/seed-2'\)"):
        checkpoints(tmp_path / "my runs")
    assert checkpoints(found[1]) == [found[1]]  # a file is what was asked for


def test_a_folder_without_a_report_is_no_finished_run(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", "best.safetensors")
    with pytest.raises(MomentseekError, match=r"holds no report\.json of finished training; .*best\.safetensors"):
        checkpoints(folder)
