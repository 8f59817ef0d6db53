"""Query-performance prediction: against scipy, and on runs that know or do not know when they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from momentseek import Judgements, Run, diagnose
from momentseek.core.errors import MomentseekError
from momentseek.measuring.diagnose.performance import PREDICTORS, kendall, pearson, predict_performance

values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=3, max_size=30)


@given(values, st.randoms(use_true_random=False))
def test_correlations_are_scipys(some: list[float], random: object) -> None:
    x = np.array(some)
    y = np.array(random.choices(some, k=len(some)))  # type: ignore[attr-defined]
    one = np.ones((1, len(x)))
    if x.std() and y.std():
        assert pearson(x, y, one)[0] == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-9)
        assert kendall(x, y, one)[0] == pytest.approx(stats.kendalltau(x, y)[0], abs=1e-6)
    else:
        assert np.isnan(kendall(x, y, one)[0])


def test_weights_count_queries_as_often_as_they_were_drawn() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    twice = np.array([[2.0, 0.0, 1.0, 1.0]])
    drawn = [0, 0, 2, 3]
    assert pearson(x, y, twice)[0] == pytest.approx(stats.pearsonr(x[drawn], y[drawn])[0])
    assert kendall(x, y, twice)[0] == pytest.approx(stats.kendalltau(x[drawn], y[drawn])[0], abs=1e-6)


def corpus(knowing: float, queries: int = 150) -> tuple[Run, Judgements]:
    """Queries whose first prediction overlaps by a random amount, with a score that knows it to a degree."""
    rng = np.random.default_rng(3)
    quality = rng.uniform(0.1, 1.0, queries)
    noise = rng.uniform(0.1, 1.0, queries)
    top = knowing * quality + (1 - knowing) * noise
    rows: list[tuple[object, str, float, float, float]] = []
    for i in range(queries):
        rows += [
            (i, f"v{i}", 0.0, 10 * quality[i], 1 + top[i]),
            (i, f"w{i}", 0.0, 5.0, 1.0),
            (i, f"w{i}", 6.0, 9.0, 0.5),
        ]
    truth = Judgements.from_rows([(i, f"v{i}", 0, 10, 1) for i in range(queries)])
    return Run.from_rows(rows), truth


def figures(run: Run, truth: Judgements) -> dict[str, tuple[float, float, float]]:
    (report,) = diagnose(run, truth, "mIoU", only=["performance"]).performance or ()
    assert [f.predictor for f in report.figures] == list(PREDICTORS)
    return {f.predictor: f.kendall for f in report.figures}


def test_a_run_that_knows_is_told_from_one_that_does_not() -> None:
    knows, guesses = figures(*corpus(1.0)), figures(*corpus(0.0))
    for predictor in ("top", "gap", "spread", "NQC", "clarity"):
        assert knows[predictor][0] > 0.8
        assert knows[predictor][1] > 0.5
        assert guesses[predictor][2] < knows[predictor][1]


def test_predictors_by_hand() -> None:
    run = Run.from_rows([("q", "a", 0, 1, 5.0), ("q", "a", 1, 2, 3.0), ("q", "b", 0, 1, 1.0), ("p", "a", 0, 1, 2.0)])
    truth = Judgements.from_rows([("q", "a", 0, 1, 1), ("p", "a", 0, 1, 1), ("none", "a", 0, 1, 1)])
    found: NDArray[np.float64] = predict_performance(run, truth)
    by_name = dict(zip(PREDICTORS, found.T, strict=True))
    assert by_name["top"][:2].tolist() == [5.0, 2.0]
    assert by_name["gap"][0] == 2.0
    assert by_name["NQC"][0] == pytest.approx(np.std([5, 3, 1]) / 3)
    assert by_name["WIG"][0] == 0.0
    assert by_name["cohesion"][:2].tolist() == [pytest.approx(2 / 3), 1.0]
    assert np.isnan(by_name["gap"][1])
    assert np.isnan(found[2]).all()


def test_scores_that_only_number_ranks_are_refused() -> None:
    truth = Judgements.from_rows([(i, "v", 0, 10, 1) for i in range(5)])
    run = Run.from_groups(list(range(5)), [2] * 5, ["v"] * 10, [0] * 10, [5] * 10)
    with pytest.raises(MomentseekError, match="only repeat the rank"):
        diagnose(run, truth, only=["performance"])
