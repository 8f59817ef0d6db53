import json

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words

from momentseek.benchmarks.datasets.common import tally
from momentseek.benchmarks.datasets.pseudo_training import (
    collect_moments,
    find_pseudo_training,
    read_queries_by_id,
    read_query_texts,
    select_queries,
    training_json,
    training_summary,
)
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import read_truth

SENTENCES = ["Ross opens the door.", "Monica opens the door.", "Joey eats a pizza.", "Ross opens the door."]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def truth(sentences=SENTENCES, **more):
    n = len(sentences)
    return Judgements.from_groups(
        [str(10 + i) for i in range(n)],
        [1] * n,
        [f"v{i % 3}" for i in range(n)],
        [2.5 * i for i in range(n)],
        [2.5 * i + 5 for i in range(n)],
        durations={"v0": 60.0, "v1": 61.5, "v2": 62.0},
        queries=sentences,
        **more,
    )


def test_moments_are_ranked_by_similarity_and_ties_keep_file_order(tmp_path):
    training = find_pseudo_training(collect_moments([truth()]), Words(), 3)
    assert training.query_ids == ("10", "11", "12", "13")
    assert training.moments[[0, 1, 3]].tolist() == [[0, 3, 1], [1, 0, 3], [0, 3, 1]]
    assert training.moments[2, 0] == 2
    np.testing.assert_allclose(training.similarity[:, 0], 1, rtol=1e-6)
    assert training.decisions[3].evidence == {"own_rank": 2, "first": 1.0, "last": pytest.approx(0.75, abs=2e-3)}


def test_the_file_is_tvr_rankings_and_reads_back(tmp_path):
    training = find_pseudo_training(collect_moments([truth()]), Words(), 3)
    written = json.loads(training_json(training, 2))
    assert [list(entry) for entry in written] == [["query_id", "query", "relevant_moment"]] * 4
    assert written[1]["query_id"] == 11
    assert written[1]["relevant_moment"][0] == {
        "pair_id": 3,
        "video_name": "v1",
        "timestamp": [2.5, 7.5],
        "duration": 61.5,
        "caption": "Monica opens the door.",
        "similarity": 1.0,
    }
    (tmp_path / "train_top02.json").write_bytes(training_json(training, 2))
    read = read_truth(tmp_path / "train_top02.json")
    assert read.counts.tolist() == [2] * 4
    assert read.columns["caption"][1] == "Ross opens the door."
    assert read.relevance.tolist() == [1] * 8
    longer = json.loads(training_json(training, 3))
    assert [e["relevant_moment"][:2] for e in longer] == [e["relevant_moment"] for e in written]


def test_more_moments_than_there_are():
    assert find_pseudo_training(collect_moments([truth()]), Words(), 40).moments.shape == (4, 4)


def test_queries_of_validation_and_test_are_left_out_but_their_moments_stay():
    training = find_pseudo_training(collect_moments([truth()]), Words(), 4, exclude=[" ross opens  the DOOR"])
    assert training.query_ids == ("11", "12")
    assert sorted(training.moments[0].tolist()) == [0, 1, 2, 3]
    assert tally(training.decisions)["dropped"] == {"occurs in --exclude": 2}


def test_other_words_for_the_queries_leave_the_captions():
    words = {"10": "A man opens the door.", "12": "  ", "13": "A pizza!"}
    training = find_pseudo_training(collect_moments([truth()]), Words(), 1, queries=words)
    assert training.queries == ("A man opens the door.", "A pizza!")
    assert training.moments.tolist() == [[0], [2]]
    assert tally(training.decisions)["dropped"] == {"no version in --queries": 1, "no words": 1}
    assert json.loads(training_json(training, 1))[0]["relevant_moment"][0]["caption"] == "Ross opens the door."


def test_files_of_graded_moments_bring_their_own_captions():
    graded = truth(columns={"caption": ["one", "two", None, "four"]})
    assert [m.caption for m in collect_moments([graded]).moments] == ["one", "two", SENTENCES[2], "four"]


def test_equal_moments_are_one_and_wordless_ones_none():
    twice = Judgements.from_groups(
        ["1", "2", "3"], [1] * 3, ["a"] * 3, [0, 0, 3], [5, 5, 4], durations={"a": 9}, queries=["x", "x", " "]
    )
    collection = collect_moments([twice])
    assert len(collection.moments) == 1
    assert collection.own == {"1": (0,), "2": (0,), "3": ()}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: collect_moments([truth(), truth()]), "query 10 is in another file too"),
        (lambda: collect_moments([truth([" "] * 4)]), "no moment has a caption"),
        (lambda: collect_moments([Judgements.from_rows([("1", "a", 0, 5, 1)])]), "has no words to compare"),
        (
            lambda: collect_moments([Judgements.from_groups(["1"], [1], ["a"], [0], [5], queries=["x"])]),
            "needs every video's duration.*`videos`",
        ),
        (lambda: find_pseudo_training(collect_moments([truth()]), Words(), 0), "at least 1 moment"),
        (
            lambda: find_pseudo_training(collect_moments([truth()]), Words(), 1, exclude=SENTENCES),
            "no query is left to train on",
        ),
    ],
)
def test_what_cannot_be_done_is_said(make, message):
    with pytest.raises(MomentseekError, match=message):
        make()


def test_labels_choose_queries():
    typed = truth(fields={"type": ["v", "t", "v", "vt"]}, columns={"caption": list("abcd")})
    chosen = select_queries(typed, "type=v")
    assert chosen.query_ids == ("10", "12")
    assert chosen.queries == (SENTENCES[0], SENTENCES[2])
    assert chosen.start.tolist() == [0, 5]
    assert chosen.columns["caption"] == ("a", "c")
    for condition, message in [("type=x", "there are t, v, vt"), ("kind=v", "have: type"), ("type", "have: type")]:
        with pytest.raises(MomentseekError, match=message):
            select_queries(typed, condition)


def test_words_come_from_files_with_and_without_moments(tmp_path):
    (tmp_path / "test.jsonl").write_text('{"desc_id": 7, "desc": "a"}\n{"desc_id": 8, "desc": "b"}\n')
    assert read_queries_by_id(tmp_path / "test.jsonl") == {"7": "a", "8": "b"}
    (tmp_path / "sta.txt").write_text("LAMP 0.0 5.0##she sings\n")
    assert read_query_texts(tmp_path / "sta.txt") == ["she sings"]
    (tmp_path / "bare.jsonl").write_text('{"query_id": 1, "video": "a", "start": 0, "end": 2, "relevance": 1}\n')
    with pytest.raises(MomentseekError, match="has no texts"):
        read_query_texts(tmp_path / "bare.jsonl")


def test_leaks_are_found_as_statistics_find_them():
    training = find_pseudo_training(collect_moments([truth()]), Words(), 1, exclude=["Ross, opens -- the door!", "..."])
    assert training.query_ids == ("11", "12")


def test_a_moment_stands_once_with_its_most_similar_caption():
    pairs = Judgements.from_groups(
        ["1", "2", "3"], [1] * 3, ["a", "a", "b"], [0, 0, 3], [5, 5, 4], durations={"a": 3600 * 9, "b": 9},
        queries=["Ross eats pizza", "Ross eats", "Joey sleeps"],
    )  # fmt: skip
    training = find_pseudo_training(collect_moments([pairs]), Words(), 3)
    assert training.moments.tolist() == [[0, 2], [1, 2], [2, training.moments[2, 1]]]
    found = training_summary(training, [2])
    assert found["moments_to_choose_from"] == found["lists"]["2"]["moments"] == 2
    assert found["lists"]["2"]["hours"] == round(6 / 3600, 2)
    assert found["own_moment_first"] == 1
    assert [d.evidence["own_rank"] for d in training.decisions] == [1, 1, 1]


def test_similarities_that_are_not_finite_are_not_written():
    training = find_pseudo_training(collect_moments([truth()]), Words(), 2)
    training.similarity[2, 1] = np.nan
    with pytest.raises(MomentseekError, match="query 12 has a similarity that is not a finite number"):
        training_json(training, 2)
    assert training_json(training, 1)


def test_the_summary_counts():
    training = find_pseudo_training(collect_moments([truth()]), Words(), 2, exclude=[SENTENCES[2]])
    found = training_summary(training, [1, 2])
    assert found["queries"] == 3
    assert found["own_moment_first"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["lists"]["2"]["pairs"] == 6
    assert found["lists"]["1"]["moments"] == 2
    assert found["lists"]["1"]["hours"] == round(10 / 3600, 2)
