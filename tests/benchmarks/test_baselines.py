"""Baselines: what they predict, and the figures they have in the papers."""

from __future__ import annotations

import numpy as np
import pytest

from momentseek.benchmarks.baselines import (
    BASELINES,
    BaselineSettings,
    bias_based,
    chance,
    default_bandwidth,
    moment_frequency,
    predict_all,
)
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth

DISCOUNTED = ["dR@1[IoU>=0.5]", "dR@1[IoU>=0.7]"]
RECALL = ["R@1[IoU>=0.5]", "R@1[IoU>=0.7]"]


def table(rows, durations, **more):
    """From ``(query, video, start, end)``, one moment per query."""
    return Judgements.from_groups(
        [r[0] for r in rows],
        [1] * len(rows),
        [r[1] for r in rows],
        [r[2] for r in rows],
        [r[3] for r in rows],
        durations=durations,
        **more,
    )


@pytest.fixture
def train():
    rng = np.random.default_rng(0)
    start = rng.choice([0.0, 3.0, 6.0], 300, p=[0.6, 0.3, 0.1])
    return table([(i, "t", s, s + 2) for i, s in enumerate(start)], {"t": 10.0})


@pytest.fixture
def test():
    return table([("q1", "a", 1, 2), ("q2", "b", 5, 9), ("q3", "a", 0, 1)], {"a": 10.0, "b": 40.0}, queries=["x"] * 3)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_answers_every_query_within_its_video(train, test, name):
    run = BASELINES[name].predict(train, test, BaselineSettings(top=7))
    assert run.query_ids == test.query_ids
    assert run.queries == test.queries
    seconds = dict(zip(test.videos, test.durations, strict=True))
    for query in test:
        moments = run.moments(query)
        assert 1 <= len(moments) <= 7
        assert {m.video for m in moments} == {test.moments(query)[0].video}
        assert all(0 <= m.start < m.end <= seconds[m.video] for m in moments)
        scores = run.score[run.rows(query)]
        assert scores.tolist() == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", ["chance", "bias-based"])
def test_seeds(train, test, name):
    one, same, other = (BASELINES[name].predict(train, test, BaselineSettings(seed=s)) for s in (1, 1, 2))
    assert one.start.tolist() == same.start.tolist()
    assert one.start.tolist() != other.start.tolist()


def test_chance_is_uniform_over_all_stretches():
    many = table([(i, "a", 0, 1) for i in range(4000)], {"a": 1.0})
    run = chance(many, top=1)
    length = run.end - run.start
    assert length.mean() == pytest.approx(1 / 3, abs=0.01)  # of (s, e) uniform on 0 <= s < e <= 1
    assert run.start.mean() == pytest.approx(1 / 3, abs=0.01)
    assert (length > 0.5).mean() == pytest.approx(1 / 4, abs=0.02)


def test_predict_all(test):
    run = predict_all(test)
    assert run.start.tolist() == [0, 0, 0]
    assert run.end.tolist() == [10, 40, 10]


def test_moment_frequency(train, test):
    run = moment_frequency(train, test, bins=10)
    assert run.start[:3].tolist() == [0, 3, 6]
    assert (run.end - run.start)[:3].tolist() == pytest.approx([2, 2, 2])
    assert run.moments("q2")[0].end == 8.0
    assert run.score[:3].sum() == pytest.approx(1)


def test_moment_frequency_of_very_short_moments_has_a_length(test):
    short = table([("x", "t", 9.99, 10), ("y", "t", 0, 0.01)], {"t": 10.0})
    assert [(m.start, m.end) for m in moment_frequency(short, test).moments("q1")] == [(0, 0.5), (9.5, 10)]


def test_bias_based_draws_where_training_moments_lie(train, test):
    run = bias_based(train, test, bandwidth=0.01, samples=300, top=300)
    rows = run.rows("q1")
    start = run.start[rows]
    for centre, share in ((0, 0.6), (3, 0.3), (6, 0.1)):
        assert (abs(start - centre) < 0.5).mean() == pytest.approx(share, abs=0.1)
    assert start[0] < 0.1  # the densest place comes first
    near = abs(start - 6) < 0.5
    assert run.score[rows][near].max() < run.score[rows][0]


def test_bandwidths(train):
    assert default_bandwidth(train) == 0.008
    assert default_bandwidth(table([(0, "v_abc", 0, 1)], None)) == 0.0013


def test_queries_of_several_videos_and_pools():
    rows = {"start": [0, 1, 2], "end": [3, 4, 5], "durations": {"a": 9.0, "b": 7.0, "c": 5.0}}
    several = Judgements.from_groups(["q"], [3], ["a", "b", "a"], **rows)
    assert [(m.video, m.end) for m in predict_all(several).moments("q")] == [("a", 9.0), ("b", 7.0)]
    assert len(predict_all(several, top=1).start) == 1
    pooled = Judgements.from_groups(["q"], [3], ["a", "b", "a"], **rows, pools=([3], ["a", "b", "c"]))
    assert [m.video for m in predict_all(pooled).moments("q")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda a, b: BASELINES["nonsense"], "there is no baseline 'nonsense'; there are bias-based, chance"),
        (lambda a, b: BASELINES["bias-based"].predict(None, b), "bias-based learns where moments are"),
        (lambda a, b: predict_all(table([("q", "a", 0, 1)], None)), r"duration of video a is unknown; .*\(`videos`\)"),
        (lambda a, b: moment_frequency(table([("q", "z", 0, 1)], None), b), "duration of video z is unknown"),
        (lambda a, b: moment_frequency(table([("q", "z", 8, 9)], {"z": 5.0}), b), "no moment to learn from"),
        (lambda a, b: bias_based(a, b, samples=0), "too few samples"),
        (lambda a, b: bias_based(a, b, bandwidth=-1.0), "must be positive"),
        (lambda a, b: predict_all(b, top=0), "at least one"),
    ],
)
def test_refusals(train, test, call, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        call(train, test)


@pytest.fixture
def charades(data):
    parts = ("train", "test_iid", "test_ood")
    return [read_truth(data / f"charades-cd/charades_{part}.json", invalid="keep") for part in parts]


def percent(run, truth, measures):
    return [100 * value for value in evaluate(run, truth, measures).means.values()]


def test_predict_all_on_charades_cd_as_published(charades):
    _, *tests = charades
    found = [percent(predict_all(t), t, DISCOUNTED + RECALL) for t in tests]
    assert [round(v, 2) for v in found[0]] == [0, 0, 0, 0]
    assert [round(v, 2) for v in found[1]] == [0.06, 0, 0.12, 0]


@pytest.mark.figures
def test_predict_all_finds_nothing_out_of_distribution_on_activitynet(data):
    from momentseek.benchmarks.datasets.pairs import merge_truths
    from momentseek.benchmarks.datasets.resplit import RECIPES, resplit

    parts = [read_truth(data / f"activitynet-captions/{p}.json", invalid="keep") for p in ("train", "val", "test")]
    ood = resplit(merge_truths(parts), RECIPES["activitynet-cd"]).splits["test_ood"]
    assert percent(predict_all(ood), ood, DISCOUNTED) == [0, 0]


@pytest.mark.figures
def test_bias_based_on_charades_cd_as_published(charades):
    train, *tests = charades
    found = [
        [v for t in tests for v in percent(bias_based(train, t, seed=seed, top=1), t, DISCOUNTED)] for seed in range(20)
    ]
    published = [16.87, 9.34, 5.04, 2.21]
    assert np.all(np.abs(np.mean(found, axis=0) - published) < np.std(found, axis=0, ddof=1))
