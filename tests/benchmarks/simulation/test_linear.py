"""What can be learnt from the features, checked by a matcher that needs no training loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from linear_matcher import linear_score

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings

BOTH, VIDEO, SUBTITLE = ("video", "subtitle"), ("video",), ("subtitle",)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    folders = {hard: tmp_path_factory.mktemp("hard") / str(hard) for hard in (0.0, 0.75, 1.0)}
    for hard, folder in folders.items():
        report = simulate(folder, SimulationSettings(videos=50, queries=200, seed=2, hard=hard))
        assert report.scores["oracle (knows the judgements, to the clip)"] > 0.9
    return folders


def test_a_linear_matcher_finds_less_the_harder_it_is(corpora: dict[float, Path]) -> None:
    easy, middle, hard = (linear_score(folder) for folder in corpora.values())
    assert easy > 0.4
    assert easy - 0.05 > middle > hard + 0.05
    assert hard < 0.15


def test_both_streams_help_and_neither_is_empty(corpora: dict[float, Path]) -> None:
    both, video, subtitle = (linear_score(corpora[0.0], streams) for streams in (BOTH, VIDEO, SUBTITLE))
    assert both > video > subtitle > 0.03
