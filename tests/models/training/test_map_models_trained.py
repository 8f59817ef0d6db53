"""The map family through the loop: same seed, same Run; pools and known videos alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.moments.run import Run
from momentseek.models.features.data import Data
from momentseek.models.inference.prediction import predict
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train

SIZES: dict[str, dict[str, Any]] = {
    "tan2d": {"map_layers": 1, "text_layers": 1},
    "mdd": {"map_layers": 1, "text_layers": 1, "heads": 2, "confounders": "L*A*U"},
    "mmn": {"map_layers": 1, "space": 8},
    "crocs": {"map_layers": 1, "space": 8},
    "cet": {"heads": 2, "layers": 1},
    "bet": {"heads": 2, "layers": 1},
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    out = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(out, GroundingSettings(videos=60, pool=4, video_dim=8, text_dim=8))
    with Data.open(out) as data:
        yield data


def _run(model: str, seed: int, films: Data, out: Path) -> Run:
    table = {
        "model": {"name": model, "hidden": 8, "max_clips": 8, "longest": 8, "fit": "stretch", **SIZES[model]},
        "training": {"steps": 3, "batch": 8, "lr": 1e-2, "seed": seed, "task": "SVMR", "report": []},
        "data": {"train": "train", "validate": "val"},
    }
    table["training"]["measure"] = "dR@1[IoU>=0.5]"
    train(TrainConfig.of(table), films, out)
    return predict(load_checkpoint(out).model, films, "mvmr", k=10, nms=0.5)


@pytest.mark.parametrize("model", SIZES)
def test_same_seed_same_run_and_another_seed_another(model: str, films: Data, tmp_path: Path) -> None:
    first, again, other = (_run(model, seed, films, tmp_path / str(i)) for i, seed in enumerate((5, 5, 6)))
    for name in ("video", "start", "end", "score"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert first.videos == again.videos
    assert not np.array_equal(first.score, other.score)
