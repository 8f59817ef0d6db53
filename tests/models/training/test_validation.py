"""What may be measured how, found out before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train


def test_on_pools_a_model_that_ranks_no_videos_needs_no_first_stage(tmp_path: Path) -> None:
    simulate_grounding(tmp_path / "films", GroundingSettings(videos=60, pool=4, video_dim=8, text_dim=8))
    table: dict[str, dict[str, Any]] = {
        "model": {"name": "cet", "hidden": 8, "heads": 2, "layers": 1, "max_clips": 8, "fit": "stretch", "longest": 8},
        "training": {"steps": 1, "batch": 4, "task": "VCMR", "measure": "R@1[IoU>=0.5]", "report": []},
        "data": {"train": "train", "validate": "mvmr_val"},
    }
    with Data.open(tmp_path / "films") as data:
        outcome = train(TrainConfig.of(table), data, tmp_path / "run")
        assert outcome.best is not None
        table["data"]["validate"] = "val"
        with pytest.raises(MomentseekError, match="on pools"):
            train(TrainConfig.of(table), data, tmp_path / "other")
        table["training"]["report"] = ["R@1[IoU>=0.5]"]
        for validate, test, what in [
            ("mvmr_val", "test_iid", "test_iid has no pools, .* set test=mvmr, or test= for none"),
            ("val", "mvmr", "val has no pools, .* set validate=mvmr_val$"),
        ]:
            table["data"] |= {"validate": validate, "test": test}
            with pytest.raises(MomentseekError, match=what):
                train(TrainConfig.of(table), data, tmp_path / "other")
