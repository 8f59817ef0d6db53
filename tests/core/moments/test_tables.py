import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import stable_order
from momentseek.core.moments.judgements import Corpus, Judgements, Saliency
from momentseek.core.moments.moment import Moment
from momentseek.core.moments.run import Run


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [(-1, 5, "negative"), (5, 5, "before"), (6, 5, "before"), (float("nan"), 5, "finite"), (0, float("inf"), "finite")],
)
def test_moment_rejects_impossible_times(start, end, why):
    with pytest.raises(MomentseekError, match=why):
        Moment("v", start, end)


def test_rows_are_grouped_by_query_in_order_of_appearance():
    truth = Judgements.from_rows([("b", "v", 0, 1, 1), ("a", "w", 2, 3, 2), ("b", "w", 4, 5, 3)])
    assert truth.query_ids == ("b", "a")
    assert truth.offsets.tolist() == [0, 2, 3]
    assert truth.moments("b") == [Moment("v", 0, 1), Moment("w", 4, 5)]
    assert truth.relevance.tolist() == [1, 3, 2]
    assert "a" in truth
    assert "c" not in truth


@pytest.mark.parametrize("grade", [-1, 5, 1.5])
def test_rejects_relevance_out_of_range(grade):
    with pytest.raises(MomentseekError, match="out of range"):
        Judgements.from_rows([("q", "v", 0, 1, grade)])


def test_rejects_duplicate_query():
    with pytest.raises(MomentseekError, match="query 7 occurs more than once"):
        Run.from_groups([7, "7"], [1, 1], ["a", "b"], [0, 0], [1, 1])


def test_errors_name_the_query_the_moment_and_the_remedy():
    with pytest.raises(MomentseekError) as error:
        Run.from_groups(["q1"], [2], ["v", "v"], [0, 9], [5, 3], source="run.json")
    message = str(error.value)
    assert message.startswith("run.json: 1 moment with start >= end found (query q1, rank 2: 9–3 s)")
    assert '(invalid="drop", "clip" or "keep")' in message


def test_dropping_a_prediction_keeps_the_ranks_of_the_others():
    run = Run.from_groups(["q"], [3], ["v"] * 3, [0, 9, 1], [5, 3, 2], invalid="drop")
    assert run.counts.tolist() == [3]
    assert (run.start[1], run.end[1]) == (0, 0)
    assert run.findings[0].count == 1
    assert run.findings[0].action == "dropped"


def test_dropping_a_judged_moment_keeps_its_query():
    truth = Judgements.from_groups(["a", "b"], [1, 2], ["v", "v", "w"], [9, 0, 1], [3, 5, 2], invalid="drop")
    assert truth.query_ids == ("a", "b")
    assert truth.counts.tolist() == [0, 2]
    assert truth.moments("b") == [Moment("v", 0, 5), Moment("w", 1, 2)]


def test_clipping_drops_moments_that_become_empty():
    truth = Judgements.from_groups(
        ["a", "b"], [1, 1], ["v", "v"], [-2, 7], [5, 8], durations={"v": 6.4}, invalid="clip"
    )
    assert truth.counts.tolist() == [1, 0]
    assert truth.moments("a") == [Moment("v", 0, 5)]
    assert [(f.problem, f.action) for f in truth.findings] == [
        ("a negative start", "clipped"),
        ("an end beyond the video", "clipped"),
        ("start >= end", "dropped"),
    ]


def test_keeping_leaves_times_but_never_nan():
    run = Run.from_groups(["q"], [1], ["v"], [9], [3], invalid="keep")
    assert (run.start[0], run.end[0]) == (9, 3)
    assert run.findings[0].action == "kept as is"
    with pytest.raises(MomentseekError, match="not finite"):
        Run.from_groups(["q"], [1], ["v"], [np.nan], [3], invalid="keep")


def test_end_beyond_the_video_is_reported_not_refused():
    truth = Judgements.from_groups(["a"], [1], ["v"], [0], [9], durations={"v": 6})
    assert truth.findings[0].problem == "an end beyond the video"
    assert truth.end[0] == 9


def test_video_retrieval_has_no_times_to_check():
    run = Run.from_groups(["q"], [1], ["v"], [0], [0], task="VR")
    assert run.findings == ()


def test_ranking_sorts_by_score_then_video_start_end():
    rows = [("q", "b", 3, 4, 1), ("q", "a", 5, 6, 1), ("q", "a", 2, 9, 1), ("q", "z", 0, 1, 2), ("q", "a", 2, 4, 1)]
    ranked = Run.from_rows(rows).sort_by_score()
    assert [(m.video, m.start, m.end) for m in ranked.moments("q")] == [
        ("z", 0, 1),
        ("a", 2, 4),
        ("a", 2, 9),
        ("a", 5, 6),
        ("b", 3, 4),
    ]


def test_corpus_rejects_unknown_videos_and_indices():
    corpus = Corpus({"a": 1.0}, {3: "a"}, "corpus.json")
    with pytest.raises(MomentseekError, match=r"run.json: 2 videos \(x, …\) are not in corpus.json"):
        corpus.require(["a", "x", "y"], "run.json")
    with pytest.raises(MomentseekError, match="no video has the index 4"):
        corpus.name_of(4)


@given(st.lists(st.integers(0, 2**62), max_size=60))
def test_stable_order_is_a_stable_argsort(keys):
    array = np.array(keys, dtype=np.int64)
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("policy", ["error", "drop", "clip"])
def test_rejects_scores_that_are_not_finite(score, policy):
    with pytest.raises(MomentseekError, match=rf"run.json: query b, rank 2 has the score {score}; .*invalid=\"keep\""):
        Run.from_groups(
            ["a", "b"], [1, 2], ["v"] * 3, [0] * 3, [1] * 3, [1, 2, score], invalid=policy, source="run.json"
        )


def test_kept_scores_are_reported():
    run = Run.from_groups(["a"], [1], ["v"], [0], [0], [np.nan], invalid="keep", task="VR")
    assert np.isnan(run.score[0])
    assert str(run.findings[0]) == "1 moment with a score that is not a finite number kept as is (query a, rank 1)"


def test_predicted_saliency_must_be_finite():
    clips = Saliency(np.array([0, 1, 1, 3]), np.array([[1.0], [2.0], [np.nan]]))
    with pytest.raises(MomentseekError, match=r"query c, clip 1 has the saliency score nan"):
        Run.from_groups(["a", "b", "c"], [0, 0, 0], [], [], [], saliency=clips)


@pytest.mark.parametrize("rating", [-1, 4.5, np.nan])
def test_judged_saliency_is_0_to_4(rating):
    clips = Saliency(np.array([0, 0, 2]), np.array([[1.0, 2, 3], [0, rating, 4]]))
    with pytest.raises(MomentseekError, match=rf"query b has a clip of saliency {rating:g}; .* 0 to 4"):
        Judgements.from_groups(["a", "b"], [0, 0], [], [], [], saliency=clips)


@pytest.mark.parametrize("seconds", [-30, 0, float("inf")])
def test_rejects_impossible_durations(seconds):
    with pytest.raises(MomentseekError, match=rf"the duration of video v is {seconds:g} s"):
        Judgements.from_groups(["a"], [1], ["v"], [0], [1], durations={"v": seconds})


@pytest.mark.parametrize("needed", [0, -2])
def test_agreement_is_at_least_one(needed):
    with pytest.raises(MomentseekError, match=rf"agreement of query a is {needed}"):
        Judgements.from_groups(["a"], [1], ["v"], [0], [1], agreement=[needed])


def test_unknown_tasks_and_policies():
    with pytest.raises(MomentseekError, match="there is no task 'FOO'; tasks are VCMR, SVMR, VR"):
        Run.from_groups(["q"], [1], ["v"], [0], [1], task="FOO")
    for table in (Run, Judgements):
        with pytest.raises(MomentseekError, match=r"no policy 'bogus'.*error, drop, clip or keep"):
            table.from_groups(["q"], [1], ["v"], [0], [1], invalid="bogus")


def test_rejects_several_duplicate_queries():
    with pytest.raises(MomentseekError, match="query a and 1 other occur more than once"):
        Run.from_groups(["a", "a", "b", "b"], [0] * 4, [], [], [])
    with pytest.raises(MomentseekError, match="query a and 2 others occur more than once"):
        Run.from_groups([*"aabbcc"], [0] * 6, [], [], [])


def test_no_rows_at_all():
    assert len(Run.from_rows([])) == len(Judgements.from_rows([])) == 0
