"""Candidate batches: the nearest different moments, and who gets a second batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from momentseek.benchmarks.datasets.annotation.candidates import (
    build_truth,
    drop_same_wording,
    first_batch,
    rank_candidates,
    read_candidates,
    second_batch,
    still_relevant,
    write_candidates,
)
from momentseek.benchmarks.datasets.annotation.labels import read_labels
from momentseek.benchmarks.datasets.common import group_members, take_largest_groups, tally
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_run, write_bytes, write_truth


def table(texts, *, same_moment=()):
    """One moment per text; those in ``same_moment`` are another's."""
    places = [dict(same_moment).get(i, i) for i in range(len(texts))]
    return Judgements.from_groups(
        [f"c{i}" for i in range(len(texts))],
        [1] * len(texts),
        [f"v{p}" for p in places],
        [float(p) for p in places],
        [p + 5.0 for p in places],
        durations={f"v{p}": 60.0 for p in places},
        queries=texts,
    )


def nearest(similarity):
    """The k nearest moments by given similarities of captions."""

    def find(k, moments):
        members = group_members(moments)
        return take_largest_groups(np.asarray(similarity, np.float32), min(k, len(members)), members)

    return find


CAPTIONS = table([f"caption {i}" for i in range(6)])
QUERIES = table(["one", "two"])
SIMILARITY = [[0.1, 0.9, 0.5, 0.5, 0.2, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]]


def test_best_first_and_ties_by_place():
    lists = rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 4)
    assert [[c.pair_id for c in one] for one in lists] == [
        ["c0/c1", "c0/c2", "c0/c3", "c0/c4"],
        ["c1/c5", "c1/c4", "c1/c3", "c1/c2"],
    ]
    best = lists[0][0]
    assert (best.video, best.start, best.end, best.score, best.rank, best.duration) == ("v1", 1.0, 6.0, 0.9, 1, 60.0)
    assert (best.query, best.caption) == ("one", "caption 1")


def test_a_moment_with_two_captions_is_asked_once():
    captions = table([f"caption {i}" for i in range(6)], same_moment={2: 1, 3: 1})
    lists = rank_candidates(QUERIES, captions, nearest(SIMILARITY), 3)
    assert [c.pair_id for c in lists[0]] == ["c0/c1", "c0/c4", "c0/c0"]
    assert [c.pair_id for c in lists[1]] == ["c1/c5", "c1/c4", "c1/c3"]


def test_fewer_captions_than_a_batch():
    assert [len(c) for c in rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 20)] == [6, 6]


def test_moments_of_one_query_have_their_own_pairs():
    captions = Judgements.from_groups(["a"], [2], ["v", "v"], [0.0, 5.0], [1.0, 6.0], queries=["both"])
    lists = rank_candidates(QUERIES, captions, nearest([[0.2, 0.2], [0.1, 0.3]]), 2)
    assert [[c.pair_id for c in one] for one in lists] == [["c0/a.1", "c0/a.2"], ["c1/a.2", "c1/a.1"]]


def test_the_second_batch_rule():
    lists = rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 6)
    levels = {"c0/c1": 4, "c0/c2": 2, "c0/c3": 2, "c1/c5": 4, "c1/c4": 3}
    more, decisions = second_batch(lists, levels, size=3, last=2)
    assert [c.pair_id for c in more] == ["c0/c4", "c0/c0", "c0/c5", "c1/c2", "c1/c1", "c1/c0"]
    assert [(c.rank, c.batch) for c in more] == [(4, 2), (5, 2), (6, 2)] * 2
    assert decisions[1].evidence == {"levels": [3, None], "mean": 3.0}
    more, decisions = second_batch(lists, {**levels, "c1/c4": 0}, size=3, last=2)
    assert {c.query_id for c in more} == {"c0"}
    assert tally(decisions) == {
        "extended": {"the last 2 are still relevant": 1},
        "covered": {"the last 2 are not relevant enough": 1},
    }
    _, decisions = second_batch(lists, {"c0/c1": 4}, size=3, last=2)
    assert [d.outcome for d in decisions] == ["covered", "waiting"]


def test_labels_of_another_ranking_are_refused():
    with pytest.raises(MomentseekError, match="pair c0/zzz is not among these queries' candidates; give the same"):
        second_batch(rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 6), {"c0/zzz": 3})


def test_judged_pairs_are_not_asked_again():
    lists = rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 4)
    with pytest.raises(MomentseekError, match="pair c0/c3 has rank 3, beyond a first batch of 2"):
        second_batch(lists, {"c0/c1": 4, "c0/c2": 2, "c0/c3": 2}, size=2, last=1)


def test_one_last_pair_in_words():
    lists = rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 4)
    _, decisions = second_batch(lists, {"c0/c2": 2, "c1/c5": 0}, size=2, last=1)
    assert [d.reason for d in decisions] == ["the last is still relevant", "no consensus on the last"]


def test_still_relevant_without_any_consensus():
    assert still_relevant([[float("nan")] * 5]).tolist() == [False]


@pytest.mark.figures
def test_tvr_rankings_own_decisions(data):
    """Pair ids come in blocks of 20, and block b + 8,666 is the second batch of block b."""
    from momentseek.benchmarks.datasets.annotation.consensus import find_consensus

    found = find_consensus(read_labels(data / "tvr-ranking/raw_annotation.csv"))
    levels = np.full(20 * 17_332, np.nan)
    ids = np.array(found.labels.pair_ids, dtype=np.int64)
    levels[ids] = np.where(found.kept, found.relevance, np.nan)
    asked = set((ids // 20).tolist())
    firsts = [b for b in sorted(asked) if b < 8_666]
    extended = np.array([b + 8_666 in asked for b in firsts])
    assert extended.sum() == 236 + 1_308  # section 3.4: queries annotated with 40 moments
    last = levels.reshape(-1, 20)[firsts, 15:]
    share = {t / 10: (still_relevant(last, t / 10) == extended).mean() for t in range(10, 31)}
    assert share[2.0] == pytest.approx(0.79, abs=0.005)
    assert max(share.values()) < share[2.0] + 0.005


def test_files_are_runs_and_come_back(tmp_path):
    chosen = first_batch(rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 3))
    write_bytes(tmp_path / "c.jsonl", write_candidates(chosen))
    assert read_candidates(tmp_path / "c.jsonl") == chosen
    run = read_run(tmp_path / "c.jsonl")
    assert run.moments("c0")[0].video == "v1"
    assert run.score.tolist() == [c.score for c in chosen]


def test_any_truth_serves_as_candidates(tmp_path):
    write_truth(QUERIES, tmp_path / "t.jsonl")
    assert [c.pair_id for c in read_candidates(tmp_path / "t.jsonl")] == ["c0/1", "c1/1"]


def test_judged_candidates_become_truth():
    chosen = first_batch(rank_candidates(QUERIES, CAPTIONS, nearest(SIMILARITY), 2))
    truth = build_truth(chosen, {"c0/c2": 4, "c0/c1": 0})
    assert truth.query_ids == ("c0", "c1")
    assert (truth.counts.tolist(), truth.relevance.tolist()) == ([2, 0], [0, 4])
    assert truth.columns["pair_id"] == ("c0/c1", "c0/c2")
    with pytest.raises(MomentseekError, match="pair x is not among the candidates"):
        build_truth(chosen, {"x": 1})
    with pytest.raises(MomentseekError, match="pair c0/c1 occurs more than once"):
        build_truth([*chosen, replace(chosen[0], rank=9)], {})


def test_same_words_are_asked_once():
    kept, decisions = drop_same_wording(table(["A man sits.", "Someone else", "a man  sits"]))
    assert kept.query_ids == ("c0", "c1")
    assert kept.queries == ("A man sits.", "Someone else")
    assert [(d.subject, d.evidence) for d in decisions] == [("c2", {"query": "c0"})]
