from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.judgements import Judgements
from momentseek.models.training.pairs import ListOrder, PairOrder, TrainingPairs, training_pairs

videos = st.lists(st.integers(0, 8), min_size=1, max_size=80).map(np.array)


@given(videos, st.integers(1, 10), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3))
def test_every_pair_once_an_epoch(video: np.ndarray, batch: int, per_video: int, window: int, epoch: int) -> None:
    order = PairOrder(video, batch, per_video, 7, np.arange(9)[::-1].copy(), window)
    batches = [order.batch_at(epoch, i) for i in range(order.per_epoch)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(video)))
    assert all(len(b) for b in batches)


@given(videos, st.integers(1, 10), st.integers(1, 5))
def test_any_batch_can_be_made_again(video: np.ndarray, batch: int, per_video: int) -> None:
    one, other = (PairOrder(video, batch, per_video, 3) for _ in range(2))
    wanted = [(e, i) for e in range(3) for i in range(one.per_epoch)]
    straight = {w: one.batch_at(*w).tolist() for w in wanted}
    assert all(other.batch_at(*w).tolist() == straight[w] for w in reversed(wanted))


def test_seeds_and_epochs_differ() -> None:
    video = np.arange(100) % 10
    drawn = {tuple(PairOrder(video, 5, 1, seed).batch_at(epoch, 0)) for seed in range(3) for epoch in range(3)}
    assert len(drawn) == 9


def test_a_video_brings_several_of_its_pairs() -> None:
    video = np.repeat(np.arange(40), 8)
    order = PairOrder(video, 10, 4, 0)
    assert order.per_epoch == 8
    counts = [np.bincount(video[order.batch_at(0, i)], minlength=40) for i in range(order.per_epoch)]
    assert all(set(c.tolist()) <= {0, 4, 8} for c in counts)
    assert all(len(order.batch_at(0, i)) == 40 for i in range(order.per_epoch))


def test_no_batch_is_much_smaller_than_the_others() -> None:
    order = PairOrder(np.zeros(26, np.int64), 5, 1, 0)
    assert sorted(len(order.batch_at(0, i)) for i in range(order.per_epoch)) == [5, 5, 5, 5, 6]


def test_videos_of_like_length_meet() -> None:
    video, lengths = np.arange(200), np.random.default_rng(0).integers(5, 100, 200)

    def padding(window: int) -> float:
        order = PairOrder(video, 10, 1, 0, lengths, window)
        longest = [lengths[order.batch_at(0, i)].max() for i in range(order.per_epoch)]
        return float(np.mean(longest)) / float(lengths.mean())

    assert padding(10) < 1.2 < 1.6 < padding(1)


def lists(videos: int, queries: int, each: int, seed: int = 0) -> TrainingPairs:
    rng = np.random.default_rng(seed)
    rows = [(f"q{q}", f"v{v}", 0.0, 1.0, 1) for q in range(queries) for v in rng.permutation(videos)[:each]]
    return training_pairs(Judgements.from_rows(rows))


def test_list_batches_have_all_pairs_of_their_queries_and_videos() -> None:
    pairs = lists(40, 60, 10)
    order = ListOrder(pairs, batch=12, queries=20, seed=1)
    for index in range(order.per_epoch):
        chosen = order.batch_at(0, index)
        queries, videos = np.unique(pairs.query[chosen]), np.unique(pairs.video[chosen])
        assert len(queries) <= 20
        assert len(videos) <= 12
        every = np.isin(pairs.query, queries) & np.isin(pairs.video, videos)
        assert chosen.tolist() == np.flatnonzero(every).tolist()
        assert np.bincount(pairs.query[chosen])[queries].mean() > 12 * 10 / 40  # more than by chance


def test_list_batches_pass_by_every_video_and_are_drawn_again_alike() -> None:
    pairs = lists(40, 60, 10)
    order, again = (ListOrder(pairs, batch=8, queries=60, seed=3) for _ in range(2))
    seen = [order.batch_at(2, i) for i in range(order.per_epoch)]
    assert set(np.concatenate([pairs.video[c] for c in seen]).tolist()) == set(range(40))
    assert [again.batch_at(2, i).tolist() for i in range(order.per_epoch)] == [c.tolist() for c in seen]
    assert order.batch_at(3, 0).tolist() != seen[0].tolist()
