"""Queries that are asked of a pool of videos each: what is found is what loops over everything find."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.models.features.data import Dims
from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inference.prediction import predict
from momentseek.models.registry import MODELS, build
from momentseek.recognition.exported.preparation import edges

MAPS = {"hidden": 8, "max_clips": 8, "longest": 8, "map_layers": 2, "kernel": 3}
SMALL = {
    "mmn": {**MAPS, "space": 6},
    "crocs": {**MAPS, "space": 6},
    "tan2d": {**MAPS, "text_layers": 1},
    "mdd": {**MAPS, "text_layers": 1, "heads": 2},
    "bet": {"hidden": 8, "heads": 2, "layers": 1, "max_clips": 8, "longest": 8},
    "cet": {"hidden": 8, "heads": 2, "layers": 1, "max_clips": 8, "longest": 8},
}


def pooled(world, size, seed=0, queries=None):
    """The same world, each query with a pool of ``size`` videos, its own first."""
    rng = np.random.default_rng(seed)
    truth = world.truth
    pools, rows = [], []
    for query in truth.query_ids[:queries]:
        own = truth.moments(query)[0].video
        others = [v for v in world.corpus if v != own]
        pools.append([own, *rng.permutation(others)[: size - 1].tolist()])
        rows.append(own)
    judged = Judgements.from_groups(
        truth.query_ids[:queries],
        [1] * len(rows),
        rows,
        [0.0] * len(rows),
        [0.75] * len(rows),
        queries=truth.queries[:queries],
        pools=(map(len, pools), [v for pool in pools for v in pool]),
    )
    return dataclasses.replace(world, truth=judged), dict(zip(judged.query_ids, pools, strict=True))


def long(small, videos, queries):
    """Videos of more clips than a map of eight has, no two alike, so that no two moments score the same."""
    world, rng = small.world(videos=videos, queries=queries, whole=False), np.random.default_rng(5)
    clips = {n: rng.standard_normal((int(rng.integers(9, 20)), 3), dtype=np.float32) for n in world.corpus}
    words = {q: rng.standard_normal((4, 3), dtype=np.float32) for q in world.truth.query_ids}
    durations = {n: 1.5 * len(c) - 0.5 for n, c in clips.items()}
    return dataclasses.replace(world, video=small.table(clips), query=small.table(words), durations=durations)


def overlap(start, end, other_start, other_end):
    """The IoU of two moments."""
    shared = max(0.0, min(end, other_end) - max(start, other_start))
    union = (end - start) + (other_end - other_start) - shared
    return shared / union if union > 0 else 0.0


def by_loops(model, world, pools, k, nms, alpha):
    """Video by video: all spans sorted, each drops the worse ones it overlaps too much; all videos' ones sorted."""
    config, found = model.config, []
    names = sorted({v for pool in pools.values() for v in pool}, key=world.truth.videos.index)
    with torch.inference_mode():
        model.eval()
        corpus = encode_corpus(model, world, names)
        queries = encode_queries(model, world, list(pools))
        for i, (query, pool) in enumerate(pools.items()):
            survivors = []
            for name in sorted(set(pool), key=names.index):
                place = names.index(name)
                q, v = queries.take(np.array([i])), corpus.take(np.array([place]))
                bonus = alpha * model.match(q, v).item() if alpha else 0.0
                grid = model.spans(q, v)[0].tolist()
                seconds = world.durations[name]
                times = edges(world.rows(name), config.max_clips, config.fit, world.clip_seconds, seconds).tolist()
                spans = []
                for a, row in enumerate(grid):
                    for w, score in enumerate(row):
                        b = a + config.shortest - 1 + w
                        if score > -np.inf and times[b] < seconds:
                            spans.append((-(score + bonus), a, w, times[a], min(times[b + 1], seconds)))
                kept = []
                for score, _, _, start, end in sorted(spans):
                    if nms is None or all(overlap(start, end, s, e) <= nms for _, s, e in kept):
                        kept.append((score, start, end))
                survivors += [(s, place, name, a, b) for s, a, b in kept]
            survivors.sort(key=lambda row: row[:2])  # stable: a video's own order stays
            found += sorted(
                [(query, name, a, b, -s) for s, _, name, a, b in survivors[:k]], key=lambda m: (-m[4], *m[1:4])
            )
    return found


@given(
    st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 30), st.sampled_from([None, 0.0, 0.3, 0.5]),
    st.sampled_from([0.0, 2.0]), st.booleans(),
)  # fmt: skip
def test_a_pool_is_searched_as_loops_search_it(small, seed, size, k, nms, alpha, retrieves):
    world, pools = pooled(small.world(videos=12, seed=seed, longest=10), size, seed)
    model = small.model(alpha=alpha, longest=6, videos=2)
    model.retrieves = retrieves  # type: ignore[misc]
    run = predict(model, world, world, k=k, nms=nms)
    assert small.rows(run) == by_loops(model, world, pools, k, nms, alpha if retrieves else 0.0)


def test_suppression_looks_at_as_many_spans_as_it_needs(small):
    world, pools = pooled(small.world(videos=12, queries=5, longest=10), 6)
    model = small.model(longest=8)
    for k, nms in ((3, 0.1), (5, 0.3), (40, 0.3)):
        run = predict(model, world, world, k=k, nms=nms)
        assert small.rows(run) == by_loops(model, world, pools, k, nms, 2.0)


def tolerant(found, expected):
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for column in (2, 3, 4):
        np.testing.assert_allclose(
            [row[column] for row in found], [row[column] for row in expected], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("nms", [None, 0.45], ids=["all", "nms"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_map_models_search_their_pools(small, name, nms):
    torch.manual_seed(0)
    world, pools = pooled(long(small, 14, 6), 9)
    model = build(name, SMALL[name], Dims(3, 3, None))
    run = predict(model, world, world, k=50, nms=nms)
    assert run.counts.tolist() == [50] * 6
    tolerant(small.rows(run), by_loops(model, world, pools, 50, nms, 0.0))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_batches_and_blocks_change_nothing(small, name, monkeypatch):
    """Also where many queries ask one video, which is then scored by itself."""
    torch.manual_seed(0)
    world, _ = pooled(long(small, 10, 24), 6)
    model = build(name, SMALL[name], Dims(3, 3, None))
    first, second = (predict(model, world, world, k=20, nms=0.5) for _ in range(2))
    assert small.rows(first) == small.rows(second)
    monkeypatch.setattr("momentseek.models.inference.second_stage.MIN_QUERIES_PER_VIDEO", 3)
    for cells, batch in ((300, 1), (2_000, 3), (1 << 20, 64)):
        tolerant(small.rows(predict(model, world, world, k=20, nms=0.5, cells=cells, batch=batch)), small.rows(first))


def test_the_same_run_in_any_blocks_to_the_last_bit(small, monkeypatch):
    """Sums of whole numbers are exact, so nothing is forgiven."""
    world, _ = pooled(small.world(videos=15, queries=30), 8)
    model = small.model()
    whole = small.rows(predict(model, world, world, k=9, nms=0.4))
    monkeypatch.setattr("momentseek.models.inference.prediction.MAX_HELD_SPANS", 60)
    monkeypatch.setattr("momentseek.models.inference.prediction.MAX_MERGED_SPANS", 50)
    for alike, cells, batch in ((1, 40, 1), (4, 7, 3), (10**6, 200, 64)):
        monkeypatch.setattr("momentseek.models.inference.second_stage.MIN_QUERIES_PER_VIDEO", alike)
        assert small.rows(predict(model, world, world, k=9, nms=0.4, cells=cells, batch=batch)) == whole


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_scores_much_asked_videos_alike(small, name, monkeypatch):
    """All moments of the pools, so that no cut falls between two scores that differ in the last bit."""
    torch.manual_seed(0)
    world, _ = pooled(small.world(videos=6, queries=10, whole=False), 4)
    world = dataclasses.replace(world, subtitle=world.video)
    wanted = {"hidden": 8, "heads": 2, "feedforward": 16, "max_clips": 8, "longest": 8, "pool": 2}
    wanted |= {"modalities": "video"} if name == "ms_sl" else {}
    fields = {f.name for f in dataclasses.fields(MODELS[name].config)}
    model = build(name, {n: v for n, v in wanted.items() if n in fields}, Dims(3, 3, 3))
    apart = sorted(small.rows(predict(model, world, world, k=10_000)))
    monkeypatch.setattr("momentseek.models.inference.second_stage.MIN_QUERIES_PER_VIDEO", 2)
    tolerant(sorted(small.rows(predict(model, world, world, k=10_000))), apart)


def test_only_videos_of_pools_are_encoded(small):
    world, pools = pooled(small.world(videos=30, queries=3), 4)
    model, seen = small.model(), []
    encode = model.encode_clips
    model.encode_clips = lambda clips: seen.append(len(clips)) or encode(clips)  # type: ignore
    predict(model, world, world)
    distinct = len({v for pool in pools.values() for v in pool})
    assert sum(seen) - 1 == distinct < 30  # one more to learn what grows with clips


def test_the_whole_corpus_can_be_searched_all_the_same(small):
    world = small.world(videos=12)
    with_pools, _ = pooled(world, 3)
    without = dataclasses.replace(with_pools, truth=dataclasses.replace(with_pools.truth, pools=None))
    model = small.model()
    found = [small.rows(predict(model, w, w, pools=False)) for w in (with_pools, without)]
    assert found[0] == found[1]
    assert found[0] != small.rows(predict(model, with_pools, with_pools))


def videos_of(run, query):
    rows = run.rows(query)
    return [(run.videos[v], s) for v, s in zip(run.video[rows], run.score[rows].tolist(), strict=True)]


def test_videos_of_a_pool_are_ranked(small):
    world, pools = pooled(small.world(videos=12), 5)
    model = small.model()
    run = predict(model, world, world, task="VR", k=3)
    whole = predict(model, world, world, task="VR", k=12, pools=False)
    for query, pool in pools.items():
        expected = [row for row in videos_of(whole, query) if row[0] in pool]
        best = sorted(expected, key=lambda row: (-row[1], world.truth.videos.index(row[0])))[:3]
        assert sorted(videos_of(run, query)) == sorted(best)


@pytest.mark.parametrize("first", [1, 2, None])
def test_another_models_list_is_cut_to_the_pool(small, first):
    """The first videos of the list that are in the query's pool, not those in the pool among the first of the list."""
    world, pools = pooled(small.world(videos=12), 5)
    model = small.model(videos=3, alpha=0.0)
    rng = np.random.default_rng(1)
    lists = {q: rng.permutation(world.corpus).tolist() for q in pools}
    rows = [(q, v, 0.0, 1.0, -float(i)) for q, order in lists.items() for i, v in enumerate(order)]
    run = predict(model, world, world, videos=Run.from_rows(rows), first=first, k=500)
    cut = {q: [v for v in order if v in pools[q]][: first or 3] for q, order in lists.items()}
    assert small.rows(run) == by_loops(model, world, {q: cut[q] for q in pools}, 500, None, 0.0)
    scores = np.array([[-float(lists[q].index(v)) for v in world.corpus] for q in pools])
    again = predict(model, world, world, videos=scores, first=first, k=500)
    assert {(m[0], m[1]) for m in small.rows(again)} == {(q, v) for q in pools for v in cut[q]}


def test_the_models_own_first_videos_can_be_searched_alone(small):
    world, pools = pooled(small.world(videos=12), 5)
    model = small.model()
    ranked = predict(model, world, world, task="VR", k=2)
    run = predict(model, world, world, first=2, k=500)
    assert {q: {m.video for m in run.moments(q)} for q in pools} == {
        q: {v for v, _ in videos_of(ranked, q)} for q in pools
    }


def test_a_list_may_have_nothing_for_one_query_but_not_for_all(small):
    world, pools = pooled(small.world(videos=12), 3)
    outside = {q: next(v for v in world.corpus if v not in pool) for q, pool in pools.items()}
    rows = [(q, v, 0.0, 1.0, 0.5) for q, v in outside.items()]
    with pytest.raises(MomentseekError, match="no video of any query's pool"):
        predict(small.model(), world, world, videos=Run.from_rows(rows))
    rows[0] = (rows[0][0], pools[rows[0][0]][1], 0.0, 1.0, 0.5)
    run = predict(small.model(), world, world, videos=Run.from_rows(rows))
    assert [bool(n) for n in run.counts] == [True] + [False] * 4


def test_models_that_rank_no_videos_search_pools_but_rank_none(small):
    world, _ = pooled(small.world(videos=12), 3)
    model = small.model()
    model.retrieves = False  # type: ignore[misc]
    assert len(predict(model, world, world)) == 5
    for options in ({"task": "VR"}, {"first": 2}, {"pools": False}):
        with pytest.raises(MomentseekError, match="does not rank videos"):
            predict(model, world, world, **options)


def test_encodings_must_hold_every_pools_videos(small):
    world, _ = pooled(small.world(videos=12), 3)
    some = encode_corpus(small.model(), world, world.corpus[:2])
    with pytest.raises(MomentseekError, match="of a pool was not encoded"):
        predict(small.model(), world, world, encoded=some)
