from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.benchmarks.simulation.corpus import TVR_STATISTICS, SimulationReport, simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings


def test_report_sets_its_statistics_beside_tvrs(small: tuple[Path, SimulationReport]) -> None:
    _, report = small
    assert list(report.statistics) == list(TVR_STATISTICS)
    assert report.sizes["train queries"] + report.sizes["val queries"] + report.sizes["test queries"] == 100
    text = report.as_text()
    assert "a simulation" in text
    assert "(simulated)" in text
    assert report.as_json()["simulated"] is True


def test_the_oracle_is_far_above_blind_guesses(small: tuple[Path, SimulationReport]) -> None:
    scores = small[1].scores
    oracle, knowing, *blind = scores.values()
    assert len(blind) == 4
    assert oracle > 0.9
    assert oracle > knowing > max(blind)
    assert max(blind) < 0.2


@pytest.mark.figures
def test_the_standard_corpus_is_like_tvr(tmp_path: Path) -> None:
    report = simulate(tmp_path / "standard", SimulationSettings())
    check_that_it_is_like_tvr(report, levels=7)
    assert sum(p.stat().st_size for p in (tmp_path / "standard").iterdir()) < 400e6


def test_a_small_corpus_is_like_tvr(tmp_path: Path) -> None:
    report = simulate(tmp_path / "small", SimulationSettings(videos=300, queries=400, seed=1, video_dim=8, text_dim=8))
    check_that_it_is_like_tvr(report, levels=12)  # with few queries, their shares vary


def check_that_it_is_like_tvr(report: SimulationReport, levels: float) -> None:
    """``levels``: how many per cent of the judgements a level's share may be away."""
    for name, value in report.statistics.items():
        away = abs(value - TVR_STATISTICS[name])
        if name.startswith("level"):
            assert away < levels, name
        elif name not in ("words per query", "shortest video, s", "longest video, s"):
            assert away < 0.1 * TVR_STATISTICS[name], name
    assert report.scores["oracle (knows the judgements, to the clip)"] > 0.95
