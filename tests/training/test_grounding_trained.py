"""Models of known videos through the loop: they learn more than habits, and the same seed gives the same run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.evaluation import evaluate
from momentseek.features.data import Data, DataSplit
from momentseek.models import CorpusModel
from momentseek.models.inference import predict
from momentseek.moments import Judgements
from momentseek.simulation.grounding import GroundingSettings, simulate_grounding
from momentseek.training import load_checkpoint
from momentseek.training.loop import train
from momentseek.training.presets import configure, preset_table

MEASURE = "dR@1[IoU>=0.3]"
LEARNERS: dict[str, dict[str, Any]] = {
    "ctrl": {"steps": 120},
    "acrn": {"steps": 120, "lr": 0.02, "batch": 24},
}
"""Settings, beside the preset's, with which a model learns in a few seconds of one core."""


@dataclass(frozen=True, eq=False)
class OtherWords:
    """A split whose queries are asked with the words of other queries."""

    of: DataSplit

    @property
    def truth(self) -> Judgements:
        return self.of.truth

    @property
    def corpus(self) -> tuple[str, ...]:
        return self.of.corpus

    @property
    def durations(self) -> Mapping[str, float]:
        return self.of.durations

    @property
    def query(self) -> OtherWords:
        return self

    def rows(self, name: str, /) -> int:
        return self.of.query.rows(self._other(name))

    def read(self, name: str, /) -> Any:
        return self.of.query.read(self._other(name))

    def _other(self, name: str) -> str:
        ids = self.truth.query_ids
        return ids[(ids.index(name) + 7) % len(ids)]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    out = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(out, GroundingSettings(videos=700, pool=4, video_dim=12, text_dim=12, hard=0.0, bias=0.6))
    with Data.open(out) as data:
        yield data


def trained(model: str, films: Data, out: Path, **settings: Any) -> CorpusModel:
    wanted = {"validate_every": 10_000, "test": None, "report": [], **settings}
    train(configure(preset_table("films"), model, wanted), films, out)
    return load_checkpoint(out / "last.safetensors").model


@pytest.mark.parametrize("model", LEARNERS)
def test_it_finds_what_is_asked_and_not_where_moments_usually_lie(model: str, films: Data, tmp_path: Path) -> None:
    """Asked with other words, a model that only knew the films or their habits would find as much."""
    network = trained(model, films, tmp_path / "run", **LEARNERS[model])
    found = {}
    for name in ("test_iid", "test_ood"):
        split = films.split(name)
        for kind, asked in (("right", split), ("other", OtherWords(split))):
            run = predict(network, films, asked, k=1, task="SVMR")
            score = evaluate(run, split.truth, [MEASURE], missing="zero").means[MEASURE]
            found[kind] = found.get(kind, 0.0) + score / 2
    assert found["right"] > found["other"] + 0.08, found


@pytest.mark.parametrize("model", LEARNERS)
def test_same_seed_same_run_and_another_seed_another(model: str, films: Data, tmp_path: Path) -> None:
    small = {**LEARNERS[model], "steps": 2, "batch": 8, "task": "SVMR"}
    runs = []
    for i, seed in enumerate((5, 5, 6)):
        network = trained(model, films, tmp_path / str(i), seed=seed, **small)
        runs.append(predict(network, films, "mvmr_val", k=5, nms=0.45))
    for name in ("video", "start", "end", "score"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    assert not np.array_equal(runs[0].score, runs[2].score)
