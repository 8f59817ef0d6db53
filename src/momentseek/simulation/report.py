"""Statistics of a simulated corpus beside TVR's own, and what the oracle and blind guesses score on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.baselines import BASELINES, BaselineSettings
from momentseek.evaluation import evaluate
from momentseek.formats import read_truth
from momentseek.moments import Judgements
from momentseek.simulation.lengths import KINDS
from momentseek.simulation.oracle import MOMENTS_PER_QUERY, all_knowing_run, oracle_run
from momentseek.simulation.queries import SimulatedQueries
from momentseek.simulation.relevance import Judge
from momentseek.simulation.settings import SimulationSettings
from momentseek.simulation.story import Story
from momentseek.tables import text_table

REPORTED_MEASURE = "NDCG@20[IoU>=0.5]"
TVR_STATISTICS: dict[str, float] = {
    "seconds per video": 76.19,
    "shortest video, s": 2.02,
    "longest video, s": 272.02,
    "moments per video": 5.0,
    "mean moment, s": 9.19,
    "median moment, s": 5.06,
    "starts in the first tenth, %": 27.9,
    "words per query": 13.97,
    "video queries, %": 74.3,
    "subtitle queries, %": 8.9,
    "queries of both, %": 16.8,
    "judged per query": 28.8,
    "relevant per query": 27.0,
    "level 0, %": 13.0,
    "level 1, %": 23.3,
    "level 2, %": 29.5,
    "level 3, %": 22.0,
    "level 4, %": 12.2,
}
"""Statistics of TVR's public annotations, TVR-Ranking's Table 4 and its raw labels."""


@dataclass(frozen=True)
class SimulationReport:
    """Sizes of a simulated corpus, its statistics beside TVR's, and NDCG@20[IoU>=0.5] on its validation queries."""

    settings: SimulationSettings
    fingerprint: str
    sizes: Mapping[str, int]
    statistics: Mapping[str, float]
    scores: Mapping[str, float]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{number:,} {what}" for what, number in self.sizes.items())
        return f"<SimulationReport: {sizes}; print its as_text()>"

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {
            "simulated": True,
            "settings": asdict(self.settings),
            "fingerprint": self.fingerprint,
            "sizes": dict(self.sizes),
            "statistics": {k: {"simulated": v, "tvr": TVR_STATISTICS[k]} for k, v in self.statistics.items()},
            "measure": REPORTED_MEASURE,
            "split": "val",
            "scores": dict(self.scores),
        }

    def as_text(self) -> str:
        """The report as two text tables: statistics, and scores."""
        rows = [[name, f"{value:.2f}", f"{TVR_STATISTICS[name]:.2f}"] for name, value in self.statistics.items()]
        scores = [[name, f"{value:.4f}"] for name, value in self.scores.items()]
        return "\n\n".join(
            [
                text_table(["a simulation", "here", "TVR"], rows),
                text_table([f"{REPORTED_MEASURE} on val (simulated)", ""], scores),
            ]
        )


def build_report(
    folder: Path, settings: SimulationSettings, story: Story, queries: SimulatedQueries, judge: Judge, fingerprint: str
) -> SimulationReport:
    """Read the written files back and measure them."""
    val = read_truth(folder / "val.json")
    test = read_truth(folder / "test.json")
    m = story.moments
    seconds = np.array([v.seconds for v in story.videos])
    length = m.end - m.start
    kinds = np.bincount(m.kind, minlength=len(KINDS)) / len(m) * 100
    judged = len(val.start) + len(test.start)
    levels = (np.bincount(val.relevance, minlength=5) + np.bincount(test.relevance, minlength=5)) / judged * 100
    asked = len(val) + len(test)
    values = (
        seconds.mean(),
        seconds.min(),
        seconds.max(),
        len(m) / len(seconds),
        length.mean(),
        np.median(length),
        100 * (m.start < 0.1 * seconds[m.video]).mean(),
        np.mean([len(text.split()) for text in queries.texts]),
        *kinds,
        judged / asked,
        judged * (1 - levels[0] / 100) / asked,
        *levels,
    )
    sizes = dict(zip(("train queries", "val queries", "test queries"), queries.sizes, strict=True))
    return SimulationReport(
        settings,
        fingerprint,
        {"videos": len(seconds), "moments": len(m), **sizes, "judged moments": judged},
        {name: round(float(value), 4) for name, value in zip(TVR_STATISTICS, values, strict=True)},
        _scores(val, read_truth(folder / "train_top01.json"), story, queries, judge, settings),
    )


def _scores(
    val: Judgements,
    train: Judgements,
    story: Story,
    queries: SimulatedQueries,
    judge: Judge,
    settings: SimulationSettings,
) -> dict[str, float]:
    runs = {
        "oracle (knows the judgements, to the clip)": oracle_run(val),
        "all-knowing (knows the world, not what was judged)": all_knowing_run(
            val, story, judge, queries.moment[queries.rows("val")], settings.random("all-knowing")
        ),
    }
    baseline_settings = BaselineSettings(seed=settings.seed, top=MOMENTS_PER_QUERY)
    for name in ("chance", "predict-all", "moment-frequency", "bias-based"):
        runs[f"{name} (told which videos were judged)"] = BASELINES[name].predict(train, val, baseline_settings)
    return {
        name: round(float(evaluate(run, val, REPORTED_MEASURE, missing="zero").means[REPORTED_MEASURE]), 6)
        for name, run in runs.items()
    }
