"""Tables of captions: their moments, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Judgements


def test_captions_and_moments_of_each_id():
    table = CaptionTable.from_groups(
        [3, "x", 5],
        [["one", "two"], [], ["three"]],
        [1, 0, 2],
        ["a", "b", "b"],
        [0, 1, 2],
        [4, 5, 6],
        durations={"a": 9},
    )
    assert table.groups() == [("one", "two"), (), ("three",)]
    assert table.caption_counts.tolist() == [2, 0, 1]
    assert [len(table.moments(i)) for i in table] == [1, 0, 2]
    assert np.isnan(table.durations).tolist() == [False, True]
    assert table.to_columns() == {
        "moment_id": ["3", "3", "5"],
        "video": ["a", "a", "b"],
        "start": [0.0, 0.0, 1.0],
        "end": [4.0, 4.0, 5.0],
        "caption": ("one", "two", "three"),
    }
    assert repr(table) == "<CaptionTable of (memory): 3 moments, 3 captions in 2 videos>"


def test_ids_without_moments():
    table = CaptionTable.from_groups([1], [["one"]])
    assert table.to_columns()["video"] == [None]
    assert CaptionTable.from_rows([]).groups() == []


def test_impossible_times_follow_the_policy():
    rows = [(1, "a", 5, 2, ["one"]), (2, "a", 0, 2, ["two"])]
    with pytest.raises(MomentseekError, match="1 moment with start >= end found"):
        CaptionTable.from_rows(rows)
    table = CaptionTable.from_rows(rows, invalid="drop")
    assert table.groups() == [("one",), ("two",)]
    assert table.counts.tolist() == [0, 1]


def test_rejects_duplicate_ids():
    with pytest.raises(MomentseekError, match="moment 1 occurs more than once; keep one entry per moment"):
        CaptionTable.from_groups([1, "1"], [["one"], ["two"]])


def test_offsets_must_fit():
    table = CaptionTable.from_groups([1], [["one"]])
    with pytest.raises(MomentseekError, match="offsets do not fit the moments and captions"):
        CaptionTable(**{**vars(table), "captions": ("one", "two")})


def test_queries_as_captions():
    truth = Judgements.from_groups(["q", "r"], [1, 2], ["a"] * 3, [0, 1, 2], [4, 5, 6], queries=["a dog", ""])
    assert captions_of(truth).groups() == [("a dog",), ()]
    with pytest.raises(MomentseekError, match="its queries have no words"):
        captions_of(Judgements.from_rows([("q", "a", 0, 4, 1)]))
