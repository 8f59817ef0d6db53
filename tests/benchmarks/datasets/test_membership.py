"""Comparing a split with a published one."""

from __future__ import annotations

from momentseek.benchmarks.datasets.resplit import Overlap, compare_membership, overlap
from momentseek.core.moments.judgements import Judgements


def test_videos_and_pairs():
    ours = Judgements.from_rows([("1", "a", 0, 5, 1), ("2", "a", 1, 5, 1), ("3", "b", 0, 2, 1)])
    theirs = Judgements.from_rows([("x", "a", 0, 5, 1), ("y", "a", 1, 6, 1), ("z", "c", 0, 2, 1), ("w", "d", 0, 2, 1)])
    found = compare_membership("test_ood", ours, theirs)
    assert found.videos == Overlap(2, 3, 1)
    assert found.pairs == Overlap(3, 4, 1)
    assert (found.pairs.precision, found.pairs.recall, found.pairs.iou) == (1 / 3, 1 / 4, 1 / 6)


def test_nothing():
    empty = overlap([], [])
    assert (empty.precision, empty.recall, empty.iou) == (0.0, 0.0, 1.0)
