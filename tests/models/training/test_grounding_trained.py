"""Models of known videos through the loop: they learn more than habits, and the same seed gives the same run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.loop import train
from momentseek.models.training.presets import configure, preset_table

TESTS = ("test_iid", "test_ood")
GUESSES = [(0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.0, 0.25), (0.0, 0.35), (0.65, 1.0), (0.75, 1.0), (0.0, 1.0)]
"""Moments, as shares of the film, that one may always guess."""
MEASURE = "dR@1[IoU>=0.5]"
ONE_LAYER = {"map_layers": 1, "kernel": 3}  # of the map's convolutions
STRETCHED = {"fit": "stretch", "max_clips": 16, "longest": 16}
LEARNERS: dict[str, dict[str, Any]] = {
    "ctrl": {"steps": 120, "seed": 2},
    "acrn": {"steps": 120, "lr": 0.02, "batch": 24},
    "tcn_dcm": {"steps": 150, "hidden": 24, "max_clips": 8, "longest": 8, "lr": 1e-2, **ONE_LAYER, "other_videos": 0.0},
    "ablr": {"steps": 600},
    "drn": {"steps": 200, "hidden": 24, "wide": 24},
    "scdm": {"steps": 200, "hidden": 24, **STRETCHED, "lr": 5e-3, "centre": 1.0, "width": 1.0},
    "g2l": {
        "steps": 120,
        "hidden": 24,
        "max_clips": 8,
        "longest": 8,
        "lr": 5e-3,
        **ONE_LAYER,
        "stride": 1,
        "space": 24,
    },
}
"""Settings, beside the preset's, with which a model learns in a few seconds of one core."""


SEEDED: dict[str, dict[str, Any]] = {
    **LEARNERS,
    "ctrl": {},
    "drn": {"hidden": 16, "wide": 16, "least": 0.0},
    "scdm": {"hidden": 16},
    "g2l": {"hidden": 16, "map_layers": 1, "max_clips": 8, "longest": 8},
    "tsp_prl": {"hidden": 16, "turn": 1, "moves": 3},
    "ms_sl": {"hidden": 16, "task": "VR"},
}


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
def films(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Data]:
    """As many films as the parameter says."""
    out, number = tmp_path_factory.mktemp("films") / "data", request.param
    simulate_grounding(out, GroundingSettings(videos=number, pool=4, video_dim=12, text_dim=12, hard=0.0, bias=0.6))
    with Data.open(out) as data:
        yield data


@pytest.fixture(scope="module")
def few_films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    out = tmp_path_factory.mktemp("few") / "data"
    simulate_grounding(out, GroundingSettings(videos=80, pool=4, video_dim=12, text_dim=12, hard=0.0, bias=0.6))
    with Data.open(out) as data:
        yield data


def score(run: Run, films: Data, split: str) -> float:
    return evaluate(run, films.split(split).truth, [MEASURE], missing="zero").means[MEASURE]


@pytest.fixture(scope="module")
def best_guess(films: Data) -> float:
    """What the best of the constant guesses scores, on average over both test splits."""
    scores = []
    for start, end in GUESSES:
        each = []
        for name in TESTS:
            split = films.split(name)
            asked = [(query, split.truth.moments(query)[0].video) for query in split.truth.query_ids]
            rows = [(q, v, start * split.durations[v], end * split.durations[v], 1.0) for q, v in asked]
            each.append(score(Run.from_rows(rows), films, name))
        scores.append(np.mean(each))
    return float(max(scores))


def trained(model: str, films: Data, out: Path, **settings: Any) -> CorpusModel:
    wanted = {"validate_every": 10_000, "test": None, "report": [], **settings}
    train(configure(preset_table("films"), model, wanted), films, out)
    return load_checkpoint(out / "last.safetensors").model


DEAR = set(LEARNERS) - {"ctrl"}
"""Those that need many seconds: only `make test-all` trains them on films. All learn a few pairs by heart elsewhere."""


@pytest.mark.parametrize(
    ("model", "films"),
    [pytest.param(m, 700, marks=pytest.mark.figures) if m in DEAR else (m, 300) for m in LEARNERS],
    ids=list(LEARNERS),
    indirect=["films"],
)
def test_it_learns_more_than_where_moments_usually_lie(
    model: str, films: Data, best_guess: float, tmp_path: Path
) -> None:
    """It finds more than any constant guess, or more than it finds when asked with other words: what was asked."""
    network = trained(model, films, tmp_path / "run", **LEARNERS[model])
    asked = {"right": lambda split: split, "other": OtherWords}
    found = {
        kind: np.mean([score(predict(network, films, of(films.split(s)), k=1, task="SVMR"), films, s) for s in TESTS])
        for kind, of in asked.items()
    }
    assert found["right"] - min(found["other"], best_guess) > 0.05, (found, best_guess)


@pytest.mark.parametrize("model", SEEDED)
def test_same_seed_same_run_and_another_seed_another(model: str, few_films: Data, tmp_path: Path) -> None:
    small = {"task": "SVMR", **SEEDED[model], "steps": 2, "batch": 8}
    runs = []
    for i, seed in enumerate((5, 5, 6)):
        network = trained(model, few_films, tmp_path / str(i), seed=seed, **small)
        runs.append(predict(network, few_films, "mvmr_val", k=5, nms=0.45))
    for name in ("video", "start", "end", "score"):
        np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
    assert not all(np.array_equal(getattr(runs[0], n), getattr(runs[2], n)) for n in ("start", "score"))
