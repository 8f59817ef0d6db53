from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.location_bias import (
    Side,
    density,
    divergence,
    divergence_by_chance,
    location_bias,
    recall_curve,
    sides,
)
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth

shares = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted), min_size=1, max_size=40)


@given(shares, shares)
def test_divergence(one: list[list[float]], two: list[list[float]]) -> None:
    p, q = (density([s for s, _ in some], [e for _, e in some]) for some in (one, two))
    found = divergence(p, q)
    assert 0 <= found <= 1
    assert found == pytest.approx(divergence(q, p))
    distance = scipy.spatial.distance.jensenshannon(p.counts.ravel(), q.counts.ravel(), base=2)
    assert found == pytest.approx(distance**2, abs=1e-7)
    assert divergence(p, p) == 0
    assert 1 <= p.effective_cells <= 210 + 1e-9
    assert 0 < p.fullest <= 1


def test_chance_falls_with_the_number_of_moments() -> None:
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 0.5, 5000)
    truth = density(start, start + rng.uniform(0, 0.5, 5000))
    assert divergence_by_chance(truth, 100) > divergence_by_chance(truth, 10_000) > 0


IID = Judgements.from_groups(["i1"], [1], ["v"], [0], [50], durations={"v": 100.0})
OOD = Judgements.from_groups(["o1"], [1], ["w"], [60], [70], durations={"w": 100.0})


def test_two_truths_give_the_gap() -> None:
    runs = [("ours_ood", Run.from_rows([("o1", "w", 0, 50, 1)])), ("ours_iid", Run.from_rows([("i1", "v", 0, 50, 1)]))]
    report = location_bias(sides(runs, [IID, OOD]))
    gap = report.gaps[0]
    assert gap.system == "ours_iid / ours_ood"
    assert gap.difference["R@1[IoU>=0.5]"] == 1.0
    assert [s.runs[0].run for s in report.sides] == ["ours_iid", "ours_ood"]


def test_a_run_that_answers_both_is_split() -> None:
    both = Run.from_groups(["i1", "o1"], [1, 1], ["v", "w"], [0, 0], [50, 50], queries=["sits", "runs"])
    iid, ood = sides([("both", both)], [IID, OOD])
    assert iid.runs[0][1].query_ids == ("i1",)
    assert ood.runs[0][1].query_ids == ("o1",)
    assert ood.runs[0][1].queries == ("runs",)
    assert location_bias([iid, ood]).gaps[0].system == "both"


def test_runs_that_do_not_fit_are_refused() -> None:
    stranger = Run.from_rows([("x", "v", 0, 1, 1)])
    with pytest.raises(MomentseekError, match="answers no query"):
        sides([("x", stranger)], [IID, OOD])
    with pytest.raises(MomentseekError, match=r"^1 run answers .* and 0 runs answer .*in the same order"):
        sides([("i", Run.from_rows([("i1", "v", 0, 1, 1)]))], [IID, OOD])
    with pytest.raises(MomentseekError, match="share query i1"):
        sides([], [IID, IID])
    with pytest.raises(MomentseekError, match="one truth, or two"):
        sides([], [IID, OOD, IID])


def test_durations_are_needed_and_unplaced_predictions_counted() -> None:
    bare = Judgements.from_rows([("q", "v", 0, 1, 1)])
    with pytest.raises(MomentseekError, match="duration"):
        location_bias([Side(bare, (("x", Run.from_rows([("q", "v", 0, 1, 1)])),))])
    elsewhere = Run.from_rows([("i1", "unknown", 0, 1, 1)])
    found = location_bias([Side(IID, (("x", elsewhere),))]).sides[0].runs[0]
    assert found.left_out == 1
    assert np.isnan(found.divergence)


def test_predicting_the_whole_video(data: Path) -> None:
    """PredictAll on Charades-CD test-ood: the paper's dR@1 of 0.06 % and 0 %."""
    truth = read_truth(data / "charades-cd/charades_test_ood.json")
    seconds = truth.durations[truth.video]
    run = Run.from_groups(
        truth.query_ids, [1] * len(truth), [truth.videos[v] for v in truth.video], np.zeros(len(seconds)), seconds
    )
    curve = recall_curve(run, truth)
    assert round(100 * curve.recall[4], 2) == 0.12
    assert round(100 * curve.discounted[4], 2) == 0.06
    assert curve.discounted[6] == 0
    found = location_bias([Side(truth, (("all", run),))]).sides[0].runs[0]
    assert (found.predicted.fullest, found.predicted.effective_cells) == (1, 1)


def test_published_predictions(data: Path) -> None:
    """Shuffling's predictions with the truth as their file has it, in float32: the figures of its evaluation."""
    results = json.loads((data / "predictions/shuffling_charades_cd_test_ood.json").read_text())["results"]
    rows = [(f"{video}:{i}", video, r) for video, some in results.items() for i, r in enumerate(some)]
    ids, videos = [r[0] for r in rows], [r[1] for r in rows]
    true, predicted = (np.array([r[2][key] for r in rows]) for key in ("gt_timestamp", "timestamp"))
    truth = Judgements.from_groups(
        ids,
        [1] * len(ids),
        videos,
        true[:, 0],
        true[:, 1],
        durations={v: r["video_duration"] for _, v, r in rows},
        invalid="keep",
    )
    run = Run.from_groups(ids, [1] * len(ids), videos, predicted[:, 0], predicted[:, 1], invalid="keep")
    curve = recall_curve(run, truth)
    assert [round(100 * curve.discounted[i], 2) for i in (2, 4, 6)] == [54.65, 42.86, 26.11]
    assert round(100 * curve.recall[4], 2) == 47.29
    assert round(100 * evaluate(run, truth, "R@1[IoU>0.5]").mean("R@1[IoU>0.5]"), 2) == 46.84
    assert all(r >= d for r, d in zip(curve.recall, curve.discounted, strict=True))
