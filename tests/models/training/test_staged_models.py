"""Models that train their parts in turns: stopped in the middle they go on to the same weights, bit for bit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from weights import same_weights

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.models.features.data import Data
from momentseek.models.inference.prediction import predict
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.loop import train
from momentseek.models.training.presets import configure, preset_table

STAGED: dict[str, dict[str, Any]] = {
    "drn": {"wide": 8, "max_clips": 8, "longest": 8, "stage": "all", "stage_epochs": [1, 2]},
    "tsp_prl": {"turn": 2, "moves": 2, "max_clips": 8},
    "wssl": {"pretrain": 1.0, "every": 2, "max_clips": 8, "vocabulary": 40},
}
"""Settings with which each of its phases lasts two of the six steps, or about so."""


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    out = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(out, GroundingSettings(videos=40, pool=4, video_dim=12, text_dim=8, hard=0.0))
    with Data.open(out) as data:
        yield data


def config(model: str, films: Data) -> TrainConfig:
    per_epoch = len(films.split("train").truth.query_ids)
    settings = {
        "hidden": 8, "steps": 6, "batch": -(-per_epoch // 2), "validate_every": 6, "test": None, "report": [],
    }  # fmt: skip
    return configure(preset_table("films"), model, {**settings, **STAGED[model]})


@pytest.mark.parametrize("model", STAGED)
def test_training_stopped_in_a_phase_ends_with_the_same_weights(model: str, films: Data, tmp_path: Path) -> None:
    asked = config(model, films)
    train(asked, films, tmp_path / "straight")

    def stop(progress: TrainingProgress) -> None:
        if progress.step == 3 and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    assert train(asked, films, tmp_path / "stopped", progress=stop).stopped == "interrupted"
    half = load_checkpoint(tmp_path / "stopped" / "last.safetensors")
    train(asked, films, tmp_path / "stopped", resume=True)
    one, two = (load_checkpoint(tmp_path / name / "last.safetensors") for name in ("straight", "stopped"))
    assert same_weights(one.model, two.model)
    assert not same_weights(one.model, half.model)
    assert all(torch.equal(tensor, two.optimiser[name]) for name, tensor in one.optimiser.items())
    first, second = (predict(c.model.eval(), films, "val", k=3, task="SVMR") for c in (one, two))
    for name in ("video", "start", "end", "score"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("model", STAGED)
def test_every_phase_has_its_turn(model: str, films: Data, tmp_path: Path) -> None:
    network = train_and_load(config(model, films), films, tmp_path)
    names = {network.phase_at(step, step // 2).name for step in range(6)}
    assert len(names) == {"drn": 3, "tsp_prl": 2, "wssl": 3}[model]


def test_the_best_checkpoint_of_drn_is_one_of_its_last_stage(
    films: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling = iter([0.9, 0.8, 0.5, 0.4, 0.2, 0.3])  # the first stage is the best, the third the worst
    monkeypatch.setattr("momentseek.models.training.prediction.Validation.value", lambda *_: next(falling))
    train(config("drn", films).with_changes(["validate_every=1"]), films, tmp_path / "run")
    best = load_checkpoint(tmp_path / "run" / "best.safetensors")
    assert (best.step, best.value) == (6, 0.3)
    assert float(best.model.graded) == 1.0


def train_and_load(asked: TrainConfig, films: Data, out: Path) -> Any:
    train(asked.with_changes(["steps=1", "validate_every=1"]), films, out / "run")
    return load_checkpoint(out / "run" / "last.safetensors").model
