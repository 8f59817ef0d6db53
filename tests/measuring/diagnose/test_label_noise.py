from __future__ import annotations

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.label_noise import (
    DEFAULT_GAMMAS,
    NOISE_MEASURES,
    Overlaps,
    axiou_errors,
    best_so_far,
    label_noise,
    normal_cdf,
    recall_errors,
    simulate_noise,
)
from momentseek.measuring.measures import parse_all


@given(st.lists(st.floats(-40, 40), min_size=1, max_size=30))
def test_normal_distribution_function(z: list[float]) -> None:
    np.testing.assert_allclose(normal_cdf(z), scipy.stats.norm.cdf(z), atol=1e-15)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.5))
def test_closed_form_of_recall(r: float, threshold: float, gamma: float) -> None:
    p = scipy.stats.norm.sf(threshold, loc=r, scale=gamma)
    errors = recall_errors(r, threshold, gamma)
    assert errors.bias == pytest.approx(p - (r >= threshold), abs=1e-12)
    assert errors.variance == pytest.approx(p * (1 - p), abs=1e-12)
    assert errors.mse == pytest.approx(errors.bias**2 + errors.variance)
    assert (errors.bias <= 0) == (r >= threshold) or errors.bias == 0


def test_figure_2_at_the_threshold() -> None:
    """At θ = r half of the noise falls on either side, however small it is."""
    for gamma in DEFAULT_GAMMAS:
        assert recall_errors(0.5, 0.5, gamma).mse == pytest.approx(0.5)
        assert axiou_errors(0.5, gamma).mse == pytest.approx(gamma**2)


def test_simulation_agrees_with_the_closed_form() -> None:
    rng = np.random.default_rng(3)
    r = rng.uniform(0, 1, (400, 1))
    everywhere = np.ones_like(r, dtype=bool)
    draws = 2000
    found = simulate_noise(
        Overlaps(r, everywhere, everywhere),
        {"AxIoU@1": lambda best: best[:, 0], "R@1": lambda best: (best[:, 0] >= 0.5).astype(float)},
        DEFAULT_GAMMAS,
        draws=draws,
        seed=5,
    )
    for gamma in DEFAULT_GAMMAS:
        for name, exact in (("AxIoU@1", axiou_errors(r[:, 0], gamma)), ("R@1", recall_errors(r[:, 0], 0.5, gamma))):
            estimate = found[name, gamma]
            error = np.sqrt(exact.variance / draws)
            assert (np.abs(estimate.bias - exact.bias) <= 5 * error + 1e-3).all()
            assert estimate.variance.mean() == pytest.approx(exact.variance.mean(), rel=0.02)
            assert estimate.mse.mean() == pytest.approx(exact.mse.mean(), rel=0.02)


@given(st.integers(0, 50))
def test_simulation_is_seeded(seed: int) -> None:
    iou = np.array([[0.2, 0.8], [0.5, 0.0]])
    present = np.array([[True, True], [True, False]])
    one, two = (
        simulate_noise(Overlaps(iou, present, present), {"m": lambda b: b.mean(axis=1)}, [0.1], draws=5, seed=seed)[
            "m", 0.1
        ]
        for _ in range(2)
    )
    assert one.bias.tolist() == two.bias.tolist()


def test_clipping_keeps_overlaps_possible() -> None:
    iou = np.array([[1.0]])
    yes = np.array([[True]])
    score = {"m": lambda best: best[:, 0]}
    assert simulate_noise(Overlaps(iou, yes, yes), score, [0.2], clip=True)["m", 0.2].bias[0] < -0.05
    assert abs(simulate_noise(Overlaps(iou, yes, yes), score, [0.2], draws=2000)["m", 0.2].bias[0]) < 0.02


def test_lists_that_end_keep_their_best() -> None:
    assert best_so_far(np.array([[0.3, 0.0]]), np.array([[True, False]])).tolist() == [[0.3, 0.3]]


TRUTH = Judgements.from_rows([("q1", "v", 0, 10, 1), ("q2", "w", 0, 10, 1)])
RUN = Run.from_rows([("q1", "v", 0, 5, 0.9), ("q1", "v", 0, 9, 0.8), ("q2", "elsewhere", 0, 10, 0.9)])


def test_values_without_noise_are_the_measures() -> None:
    from momentseek.measuring.evaluate import evaluate

    report = label_noise([("ours", RUN)], TRUTH, parse_all(NOISE_MEASURES), draws=10)
    means = evaluate(RUN, TRUTH, NOISE_MEASURES).means
    for error in report.runs[0].errors:
        assert error.value == pytest.approx(means[error.measure])
        assert error.mse == pytest.approx(error.bias_squared + error.variance, abs=0.01)


def test_noise_does_not_reach_other_videos() -> None:
    """Unsure boundaries cannot make a prediction in the wrong video right: only q1 varies."""
    report = label_noise([("ours", RUN)], TRUTH, parse_all(["AxIoU@1"]), [0.1])
    error = report.runs[0].errors[0]
    assert error.variance == pytest.approx(0.1**2 / 2)
    assert error.method == "exact"


def test_the_best_of_noisy_overlaps_is_biased_upwards() -> None:
    rows = [("q", "v", 0, 5.0, -float(k)) for k in range(10)]
    truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    report = label_noise([("ours", Run.from_rows(rows))], truth, parse_all(["AxIoU@{1,10}"]), [0.1], draws=400)
    one, ten = report.runs[0].errors
    assert one.shift == 0
    assert ten.shift > 0.05


def test_what_the_model_does_not_cover_is_said() -> None:
    report = label_noise([("ours", RUN)], TRUTH, parse_all(["mAP", "AxIoU@1"]), [0.1])
    assert [e.measure for e in report.runs[0].errors] == ["AxIoU@1"]
    assert report.skipped[0].startswith("mAP")


def test_missing_queries_and_impossible_noise() -> None:
    part = Run.from_rows([("q1", "v", 0, 5, 0.9)])
    with pytest.raises(MomentseekError, match="no predictions"):
        label_noise([("part", part)], TRUTH, parse_all(["AxIoU@1"]))
    assert label_noise([("part", part)], TRUTH, parse_all(["AxIoU@1"]), missing="zero").runs[0].queries == 2
    assert label_noise([("part", part)], TRUTH, parse_all(["AxIoU@1"]), missing="skip").runs[0].queries == 1
    with pytest.raises(MomentseekError, match="greater than 0"):
        label_noise([("ours", RUN)], TRUTH, parse_all(["AxIoU@1"]), [0.0])
