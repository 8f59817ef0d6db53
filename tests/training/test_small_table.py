"""Table 5 of TVR-Ranking and Table 4 of TVR in small, on a simulation: what is learnt, and from what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from momentseek.features.data import Data
from momentseek.simulate import Settings, simulate
from momentseek.training.loop import train
from momentseek.training.presets import configure, table

RUNS = {
    "reloclnet, N=40": ("reloclnet", "train_top40", ()),
    "reloclnet, N=1": ("reloclnet", "train_top01", ()),
    "xml, N=40": ("xml", "train_top40", ()),
    "xml, subtitles alone": ("xml", "train_top40", ("modalities=subtitle",)),
}
SMALL = ("hidden=32", "batch=24", "steps=250", "validate_every=250")


@pytest.mark.slow
def test_the_papers_order_on_a_small_simulation(tmp_path: Path) -> None:
    corpus = tmp_path / "simulation"
    settings = Settings(videos=200, queries=500, hard=0.4, video_dim=64, text_dim=48)
    blind = max(v for k, v in simulate(corpus, settings).scores.items() if "told" in k)
    scores = {}
    with Data.open(corpus) as data:
        for place, (name, (model, split, more)) in enumerate(RUNS.items()):
            config = configure(table("simulation"), model, [f"train={split}", *SMALL, *more])
            config = replace(config, data=replace(config.data, path=str(corpus)))
            outcome = train(config, data, tmp_path / str(place))
            scores[name] = outcome.report["scores"]["test"]["NDCG@20[IoU>=0.5]"]
    # seen with this seed: 0.267, 0.020, 0.223, 0.039; blind baselines, told which videos were judged, reach 0.08
    assert scores["reloclnet, N=40"] > 2 * blind
    assert scores["xml, N=40"] > 1.5 * blind
    assert scores["reloclnet, N=40"] > 3 * scores["reloclnet, N=1"]
    assert scores["xml, N=40"] > 2 * scores["xml, subtitles alone"]
