"""Merge several annotation files."""

from __future__ import annotations

import pytest

from momentseek.benchmarks.datasets.pairs import count_repeated_pairs, locations, merge_truths
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements


def part(source, rows, durations=None, **more):
    videos = [r[0] for r in rows]
    return Judgements.from_groups(
        [f"{source}:{i}" for i in range(len(rows))],
        [1] * len(rows),
        videos,
        [r[1] for r in rows],
        [r[2] for r in rows],
        durations=durations,
        queries=[r[3] for r in rows],
        source=source,
        **more,
    )


def test_pairs_of_one_video_come_together():
    one = part("one", [("a", 0, 5, "sits"), ("b", 1, 2, "runs")], {"a": 10.0, "b": 4.0})
    two = part("two", [("c", 0, 1, "eats"), ("a", 3, 4, "rises")], {"a": 10.0, "c": 2.0})
    both = merge_truths([one, two])
    assert both.query_ids == ("one:0", "one:1", "two:0", "two:1")
    assert both.videos == ("a", "b", "c")
    assert both.video.tolist() == [0, 1, 2, 0]
    assert both.queries == ("sits", "runs", "eats", "rises")
    assert locations(both).tolist() == [[0, 0.5], [0.25, 0.5], [0, 0.5], [0.3, 0.4]]
    assert count_repeated_pairs(both) == 0
    assert count_repeated_pairs(merge_truths([one, one])) == 2
    assert merge_truths([one, one]).query_ids == ("a:0", "b:0", "a:1", "b:1")


def test_columns_that_all_have():
    one = part("one", [("a", 0, 5, "x")], {"a": 10.0}, columns={"fps": [1], "own": [2]})
    two = part("two", [("a", 0, 5, "x")], {"a": 10.0}, columns={"fps": [3]})
    assert merge_truths([one, two]).columns == {"fps": (1, 3)}


def test_given_durations_replace_the_files_own():
    both = merge_truths([part("one", [("a", 0, 5, "x")], {"a": 10.0}), part("two", [("a", 0, 5, "x")])], {"a": 20.0})
    assert both.durations.tolist() == [20.0]
    assert locations(both, clip=True).tolist() == [[0, 0.25]] * 2


def test_a_given_duration_must_be_one():
    with pytest.raises(MomentseekError, match=r"one: the duration of video a is 0.0; .*`durations`"):
        merge_truths([part("one", [("a", 0, 5, "x")])], {"a": 0.0})


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([part("one", [("a", 0, 5, "x")])], r"one: the duration of video a is unknown; .*\(`durations`\)"),
        (
            [part("one", [("a", 0, 5, "x")], {"a": 10.0}), part("two", [("a", 0, 5, "x")], {"a": 11.0})],
            "two: video a lasts 11 s, but 10 s in one; say which",
        ),
        ([Judgements.from_rows([("q", "a", 0, 5, 1), ("q", "a", 1, 2, 1)])], "query q has 2 moments"),
        ([Judgements.from_rows([("q", "a", 0, 5, 3)])], "has relevance levels"),
    ],
)
def test_refusals(parts, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        merge_truths(parts)
