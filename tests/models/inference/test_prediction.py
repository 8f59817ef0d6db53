from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.moment import iou
from momentseek.core.moments.run import Run
from momentseek.models.features.data import Dims
from momentseek.models.inference.encode import encode_corpus
from momentseek.models.inference.prediction import predict
from momentseek.models.inference.second_stage import spans_of
from momentseek.models.registry import MODELS, build


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(0, 3), st.integers(1, 30), st.integers(1, 12))
def test_moments_are_those_of_loops_over_everything(small, seed, shortest, more, k, videos):
    world = small.world(seed=seed)
    model = small.model(shortest=shortest, longest=shortest + more, videos=videos, max_clips=6)
    assert small.rows(predict(model, world, world, k=k)) == small.by_loops(model, world, k)


@pytest.mark.parametrize("cells", [1, 7, 40, 10_000])
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_blocks_and_batches_change_nothing(small, cells, batch):
    world, model = small.world(videos=25, queries=9), small.model()
    run = predict(model, world, "all", k=7, cells=cells, batch=batch)
    assert small.rows(run) == small.by_loops(model, world, 7)


def test_waiting_scores_and_spans_change_nothing_when_they_are_few(small, monkeypatch):
    """What is sifted together: scores of several blocks, queries matched at once, spans before merging."""
    monkeypatch.setattr("momentseek.models.inference.first_stage.QUERIES_PER_MATCH", 2)
    monkeypatch.setattr("momentseek.models.inference.prediction.MAX_HELD_SPANS", 60)
    world, model = small.world(videos=25, queries=19), small.model()
    run = predict(model, world, "all", k=7, cells=60)
    assert small.rows(run) == small.by_loops(model, world, 7)


@pytest.mark.parametrize("nms", [None, 0.5])
def test_spans_held_at_once_are_bounded_with_suppression_too(small, monkeypatch, nms):
    """Suppression chooses from more spans than it leaves, and these are what is held."""
    monkeypatch.setattr("momentseek.models.inference.prediction.MAX_HELD_SPANS", 1500)
    world, model = small.world(videos=25, queries=40), small.model(videos=10)
    held = []

    def watched(*arguments, **options):
        spans = spans_of(*arguments, **options)
        held.append(spans.score.size)
        return spans

    monkeypatch.setattr("momentseek.models.inference.prediction.spans_of", watched)
    predict(model, world, "all", k=3, nms=nms)
    assert 750 < max(held) <= 1500


@pytest.mark.parametrize("task", ["VCMR", "SVMR", "VR"])
def test_one_query_at_a_time_finds_the_same(small, task):
    world, model = small.world(videos=12, queries=6), small.model()
    together = small.rows(predict(model, world, world, k=5, task=task))
    encoded = encode_corpus(model, world, world.corpus)
    alone = []
    for query in world.truth.query_ids:
        rows = world.truth.rows(query)
        mine = [(query, world.truth.videos[v], 0.0, 0.75, 1) for v in world.truth.video[rows]]
        one = dataclasses.replace(world, truth=type(world.truth).from_rows(mine))
        alone += small.rows(predict(model, one, one, k=5, task=task, encoded=encoded))
    assert together == alone


def test_blocks_stay_small(small):
    world, model = small.world(videos=40, queries=20, longest=10), small.model(videos=30)
    predict(model, world, world, k=5)
    assert max(model.seen) > 400
    model.seen.clear()
    predict(model, world, world, k=5, cells=400)
    assert max(model.seen) <= 400


def test_the_same_model_gives_the_same_run_and_is_left_as_it_was(small):
    world, model = small.world(), small.model()
    model.train()
    first, second = (predict(model, world, world) for _ in range(2))
    assert small.rows(first) == small.rows(second)
    assert model.training


def test_moments_in_a_known_video_come_from_the_truths_videos(small):
    world, model = small.world(videos=30, queries=8), small.model()
    run = predict(model, world, world, task="SVMR", k=50)
    assert run.task == "SVMR"
    for query in run:
        true = {m.video for m in world.truth.moments(query)}
        found = run.moments(query)
        assert {m.video for m in found} == true
        spans = sum(c + max(c - 1, 0) + max(c - 2, 0) for c in (world.rows(v) for v in true))
        assert len(found) == min(50, spans)


def test_known_videos_are_ranked_by_spans_alone(small):
    world = small.world(videos=30, queries=8)
    light, heavy = (predict(small.model(alpha=a), world, world, task="SVMR") for a in (0.0, 99.0))
    assert small.rows(light) == small.rows(heavy)


def test_a_video_without_relevant_moments_is_not_searched(small):
    world, model = small.world(), small.model()
    rows = [("q0", "v0", 0.0, 0.5, 0), ("q0", "v1", 0.0, 0.5, 2)]
    judged = dataclasses.replace(world, truth=type(world.truth).from_rows(rows))
    run = predict(model, judged, judged, task="SVMR")
    assert {m.video for m in run.moments("q0")} == {"v1"}


def test_videos_are_ranked_by_match(small):
    world, model = small.world(videos=12), small.model()
    run = predict(model, world, world, task="VR", k=5)
    assert run.task == "VR"
    assert run.counts.tolist() == [5] * len(world.truth)
    full = predict(model, world, world, task="VR", k=100)
    assert full.counts.tolist() == [12] * len(world.truth)
    assert not run.start.any()
    assert not run.end.any()
    for query in run:
        scores = full.score[full.rows(query)]
        assert (np.diff(scores) <= 0).all()
        assert run.score[run.rows(query)].tolist() == scores[:5].tolist()


def test_a_list_of_videos_from_elsewhere_is_used(small):
    world, model = small.world(videos=12), small.model(videos=2)
    rows = [(q, v, 0.0, 1.0, s) for q in world.truth for v, s in (("v3", 0.5), ("v3", 0.4), ("v7", 0.25), ("v1", 0.1))]
    run = predict(model, world, world, k=99, videos=Run.from_rows(rows))
    for query in run:
        assert {m.video for m in run.moments(query)} == {"v3", "v7"}
    spans = predict(model, world, world, k=99, videos=Run.from_rows(rows), alpha=0.0)
    weighed = {(q, v, s, e): x for q, v, s, e, x in small.rows(run)}
    for q, v, s, e, x in small.rows(spans):
        assert weighed[q, v, s, e] == x + 2.0 * {"v3": 0.5, "v7": 0.25}[v]


def test_scores_of_videos_from_elsewhere_are_used(small):
    world, model = small.world(videos=12), small.model(videos=3)
    scores = np.full((len(world.truth), 12), -np.inf)
    scores[:, 4], scores[:, 9] = 0.25, 0.75
    run = predict(model, world, world, k=99, videos=scores)
    for query in run:
        assert {m.video for m in run.moments(query)} == {world.corpus[4], world.corpus[9]}
    as_run = [(q, world.corpus[i], 0.0, 1.0, s) for q in world.truth for i, s in ((9, 0.75), (4, 0.25))]
    assert small.rows(run) == small.rows(predict(model, world, world, k=99, videos=Run.from_rows(as_run)))


def test_the_models_own_list_given_from_outside_changes_nothing(small):
    world, model = small.world(videos=12), small.model()
    own = predict(model, world, world, task="VR", k=model.config.videos)
    assert small.rows(predict(model, world, world, videos=own, k=200)) == small.rows(
        predict(model, world, world, k=200)
    )


@pytest.mark.parametrize("end_time", ["inclusive", "start"])
def test_no_moment_leaves_its_video(small, end_time):
    world, model = small.world(videos=20), small.model(videos=20, longest=8)
    shorter = {
        name: seconds * (0.4 if i % 3 == 0 else 1.0) for i, (name, seconds) in enumerate(world.durations.items())
    }
    world = dataclasses.replace(world, durations=shorter)
    run = predict(model, world, world, k=500, end_time=end_time)
    seconds = np.array([shorter[v] for v in run.videos])[run.video]
    assert (run.start < run.end).all()
    assert (run.end <= seconds).all()
    assert (run.end == seconds).any() == (end_time == "inclusive")
    rows = small.rows(run)
    assert len({r[:4] for r in rows}) == len(rows)


def test_ends_can_be_where_the_last_clip_starts(small):
    world, model = small.world(), small.model(shortest=2)
    there, here = (predict(model, world, world, k=500, end_time=e) for e in ("inclusive", "start"))
    late = {(r[0], r[1], r[2], r[4], r[3] // 1.5 * 1.5 if r[3] % 1.5 else r[3] - 1.5) for r in small.rows(there)}
    assert {(r[0], r[1], r[2], r[4], r[3]) for r in small.rows(here)} == late


def test_a_resampled_video_keeps_its_seconds(small):
    world = small.world(videos=6, longest=8)
    model = small.model(max_clips=3, fit="resample", longest=3, shortest=3, videos=6)
    run = predict(model, world, world, k=20)
    long = [m for q in run for m in run.moments(q) if world.rows(m.video) > 3]
    assert long
    assert all(m.start == 0 and m.end == world.durations[m.video] for m in long)


def test_suppression_leaves_what_a_loop_over_all_moments_leaves(small):
    world, model = small.world(videos=12, longest=9, whole=False), small.model(longest=5, videos=3)
    every = predict(model, world, world, k=150)
    assert (every.counts < 150).all()
    kept = []
    for row in small.rows(every):
        if all(k[:2] != row[:2] or float(iou(row[2], row[3], k[2], k[3])) <= 0.4 for k in kept):
            kept.append(row)
    assert len(kept) < len(small.rows(every))
    assert small.rows(predict(model, world, world, k=150, nms=0.4)) == kept


def test_suppression_fills_the_list_from_below(small):
    world, model = small.world(videos=12, longest=9), small.model(longest=6, videos=12)
    assert predict(model, world, world, k=8, nms=0.4).counts.tolist() == [8] * len(world.truth)


def test_reports_progress_of_every_stage(small):
    world, model, told = small.world(), small.model(), []
    predict(model, world, world, cells=20, batch=2, progress=lambda *step: told.append(step))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == [
        "videos",
        "queries",
        "first stage",
        "spans",
        "ranking",
    ]
    for stage in ("videos", "queries", "first stage", "spans", "ranking"):
        steps = [(done, total) for name, done, total in told if name == stage]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_scores_the_same_in_any_blocks(small, name):
    """All moments of all videos, so that no cut falls between two scores that differ in the last bit."""
    rng = np.random.default_rng(3)
    world = small.world(videos=9, queries=2, whole=False)
    silent = small.table({n: rng.standard_normal((world.rows(n), 4), dtype=np.float32) for n in world.corpus})
    world = dataclasses.replace(world, subtitle=silent)
    wanted = {"hidden": 16, "heads": 2, "feedforward": 32, "max_clips": 8, "longest": 8, "videos": 9, "pool": 2}
    wanted |= {"modalities": "video"} if name == "ms_sl" else {}
    fields = {f.name for f in dataclasses.fields(MODELS[name].config)}
    torch.manual_seed(0)
    model = build(name, {n: v for n, v in wanted.items() if n in fields}, Dims(3, 3, 4))
    videos = None if model.retrieves else rng.standard_normal((2, 9))
    whole, parts = (
        sorted(small.rows(predict(model, world, world, k=10_000, videos=videos, **blocks)))
        for blocks in ({}, {"cells": 300, "batch": 1})
    )
    assert len(whole) > (15 if model.continuous else 200)
    assert [row[:2] for row in whole] == [row[:2] for row in parts]
    apart = 1e-4 if model.continuous else 0.0  # the edges of clips are what they are
    np.testing.assert_allclose([row[2:4] for row in whole], [row[2:4] for row in parts], rtol=apart, atol=apart)
    np.testing.assert_allclose([row[4] for row in whole], [row[4] for row in parts], rtol=1e-4, atol=1e-5)


def test_bad_requests_are_refused(small):
    world, model = small.world(), small.model()
    with pytest.raises(MomentseekError, match="there is no task 'XYZ'"):
        predict(model, world, world, task="XYZ")
    with pytest.raises(MomentseekError, match="ask for 1 or more"):
        predict(model, world, world, k=0)
    with pytest.raises(MomentseekError, match="has no videos for query q1"):
        predict(model, world, world, videos=Run.from_rows([("q0", "v0", 0.0, 1.0, 0.5)]))
    rows = [(q, "elsewhere", 0.0, 1.0, 0.5) for q in world.truth]
    with pytest.raises(MomentseekError, match="video elsewhere is not in the corpus"):
        predict(model, world, world, videos=Run.from_rows(rows))
    with pytest.raises(MomentseekError, match=r"shape \(2, 2\); needed is \(5, 9\)"):
        predict(model, world, world, videos=np.zeros((2, 2)))
    with pytest.raises(MomentseekError, match="must be numbers"):
        predict(model, world, world, videos=np.full((5, 9), np.nan))


def test_a_model_that_does_not_rank_videos_needs_a_list(small):
    world, model = small.world(), small.model()
    model.retrieves = False  # type: ignore[misc]
    with pytest.raises(MomentseekError, match="does not rank videos"):
        predict(model, world, world)
    assert len(predict(model, world, world, task="SVMR")) == 5
    assert len(predict(model, world, world, videos=np.zeros((5, 9)))) == 5


def test_a_diverged_model_is_named(small):
    world, model = small.world(), small.model()
    model.mix.fill_(float("nan"))
    with pytest.raises(MomentseekError, match="diverged"):
        predict(model, world, world)
    with pytest.raises(MomentseekError, match="diverged"):
        predict(model, world, world, task="SVMR")
