"""A simulated corpus so small that a model trains on it within a second, and a model to match."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    return folder


@pytest.fixture
def corpus(simulated: Path) -> Iterator[Data]:
    with Data.open(simulated) as data:
        yield data


@pytest.fixture
def spoilt(simulated: Path, tmp_path: Path) -> Path:
    """A copy of the data, to be spoilt."""
    return Path(shutil.copytree(simulated, tmp_path / "spoilt"))


@pytest.fixture(scope="session")
def config() -> TrainConfig:
    return TrainConfig.of(
        {
            "model": {"name": "xml", "hidden": 8, "heads": 2, "max_clips": 40, "fit": "resample"},
            "training": {
                "batch": 6,
                "pairs_per_video": 4,
                "steps": 6,
                "validate_every": 3,
                "lr": 0.003,
                "schedule": "cosine",
                "report": ["NDCG@20[IoU>=0.5]"],
            },
            "data": {"train": "train_top20", "validate": "val"},
        }
    )
