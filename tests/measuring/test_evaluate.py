import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measuring.measures.strategies import pairs

import momentseek as ms
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.report import as_json, as_text, intervals, per_query

MEASURES = ["NDCG@5[IoU>=0.5]", "R@{1,3}[IoU>=0.5]", "AxIoU@5", "AP@5[IoU>0.5]", "DCG@5", "mIoU", "mAP"]


def test_the_python_api_reads_like_the_command(root):
    folder = root / "examples/kitchen"
    result = ms.evaluate(folder / "careful.jsonl", folder / "truth.jsonl", "NDCG@10[IoU>=0.5]", protocol="spr")
    assert result.protocol == "spr"
    assert 0.5 < result["NDCG@10[IoU>=0.5]"] < 1
    assert result.values.shape == (27, 1)


@given(pairs(), st.integers(0, 1000))
def test_order_of_queries_and_names_of_videos_change_nothing(pair, seed):
    truth, run = pair
    rename = {"v": "zebra", "w": "apple", "x": "mango"}
    order = list(truth.query_ids)
    random.Random(seed).shuffle(order)

    def rows(table, extra, ids):
        for q in ids:
            for m, value in zip(table.moments(q), extra[table.rows(q)].tolist(), strict=True):
                yield (q, rename[m.video], m.start, m.end, value)

    changed = ms.evaluate(
        Run.from_rows(rows(run, run.score, reversed(order))),
        Judgements.from_rows(rows(truth, truth.relevance, order)),
        MEASURES,
    )
    plain = ms.evaluate(run, truth, MEASURES)
    for q in truth.query_ids:
        before, after = plain.values[truth.position[q]], changed.values[changed.query_ids.index(q)]
        np.testing.assert_allclose(before, after, atol=1e-12)


def two_queries() -> tuple[Run, Judgements]:
    truth = Judgements.from_rows([("a", "v", 0, 10, 2), ("b", "w", 0, 10, 2)])
    return Run.from_rows([("a", "v", 0, 10, 1)]), truth


def test_a_missing_query_is_an_error_zero_or_left_out():
    run, truth = two_queries()
    name = "NDCG@10[IoU>=0.5]"
    with pytest.raises(MomentseekError, match=r"query b has no predictions, but .* judges it; .*missing=\"zero\""):
        ms.evaluate(run, truth, name)
    zero = ms.evaluate(run, truth, name, missing="zero")
    skip = ms.evaluate(run, truth, name, missing="skip")
    assert (zero[name], skip[name]) == (0.5, 1.0)
    assert zero.missing == skip.missing == ("b",)


def test_an_empty_list_is_missing_too():
    _, truth = two_queries()
    run = Run.from_groups(["a", "b"], [1, 0], ["v"], [0], [10])
    with pytest.raises(MomentseekError, match=r"query b has no predictions \(an empty list\)"):
        ms.evaluate(run, truth)


def test_predictions_for_unjudged_queries_are_refused():
    _, truth = two_queries()
    run = Run.from_rows([(q, "v", 0, 10, 1) for q in ("a", "b", "x", "y", "z", "u")])
    with pytest.raises(MomentseekError, match=r"4 queries \(x, y, z, …\) are not in"):
        ms.evaluate(run, truth)


def test_default_measures_fit_the_truth():
    run, truth = two_queries()
    assert ms.evaluate(run, truth, missing="zero").names[0] == "NDCG@10[IoU>=0.3]"
    binary = Judgements.from_rows([("a", "v", 0, 10, 1)])
    assert ms.evaluate(run, binary).names[0] == "R@1[IoU>=0.3]"


def test_tasks_of_a_submission_are_evaluated_on_their_own_lists():
    truth = Judgements.from_rows([("a", "v", 0, 10, 1)])
    vcmr = Run.from_groups(["a"], [1], ["w"], [0], [10], task="VCMR")
    svmr = Run.from_groups(["a"], [1], ["v"], [0], [10], task="SVMR")
    result = ms.evaluate([vcmr, svmr], truth, protocol="tvr")
    assert result["R@1[IoU>=0.5,task=VCMR]"] == 0
    assert result["R@1[IoU>=0.5,task=SVMR]"] == 1
    assert not any("VR]" in n for n in result.names if "task=VR" in n)
    with pytest.raises(MomentseekError, match="the run has VCMR, SVMR, but no VR predictions"):
        ms.evaluate([vcmr, svmr], truth, "R@1[task=VR]")


def test_breaking_down_by_a_field_and_by_length():
    truth = Judgements.from_groups(
        ["a", "b", "c"], [1, 1, 1], ["v"] * 3, [0, 0, 0], [5, 20, 50], fields={"type": ["t", "v", "t"]}
    )
    run = Run.from_groups(["a", "b", "c"], [1, 1, 1], ["v"] * 3, [0, 0, 0], [5, 20, 1])
    result = ms.evaluate(run, truth, "R@1[IoU>=0.5]")
    assert result.by("type") == {"t": (2, {"R@1[IoU>=0.5]": 0.5}), "v": (1, {"R@1[IoU>=0.5]": 1.0})}
    assert [n for n, _ in result.by("length").values()] == [1, 1, 1]
    assert list(result.by("length")) == ["short", "middle", "long"]
    with pytest.raises(MomentseekError, match="no 'colour' to group by, only type, length"):
        result.by("colour")


def test_notes_tell_of_queries_without_a_relevant_moment():
    truth = Judgements.from_rows([("a", "v", 0, 10, 0), ("b", "v", 0, 10, 3)])
    run = Run.from_rows([(q, "v", 0, 10, 1) for q in "ab"])
    assert ms.evaluate(run, truth).notes == ("(memory): query a has no relevant moment",)


def test_reports():
    run, truth = two_queries()
    result = ms.evaluate(run, truth, ["NDCG@{5,10}[IoU>={0.5,0.7}]", "mIoU"], missing="zero", label="ours")
    ends, grouped = intervals(result), intervals(result, "length")
    text = as_text(result, ci=ends)
    assert text.splitlines()[0] == "ours: 2 queries, 1 missing, Judged@10 100.0 %"
    assert "NDCG@10  0.5000 [0.0000, 1.0000]" in text
    report = as_json(result, by="length", ci=grouped)
    assert report["measures"]["mIoU"] == 0.5
    assert report["queries"] == 2
    assert report["missing"] == 1
    assert report["intervals"]["mIoU"] == [0.0, 1.0]
    assert report["by"]["short"]["queries"] == 2
    assert report["by"]["short"]["intervals"]["mIoU"] == [0.0, 1.0]
    assert "mIoU               0.5000 [0.0000, 1.0000]  0.5000 [0.0000, 1.0000]" in as_text(result, "length", grouped)
    assert report["unjudged"] == {"Judged@10": 0.0}
    lines = per_query(result, ".csv").decode().splitlines()
    assert lines[0] == "query_id,query,NDCG@5[IoU>=0.5],NDCG@5[IoU>=0.7],NDCG@10[IoU>=0.5],NDCG@10[IoU>=0.7],mIoU"
    assert lines[2] == "b,,0.0,0.0,0.0,0.0,0.0"
    assert per_query(result, ".jsonl").decode().count("\n") == 2


def test_everything_in_the_public_list_exists():
    for name in ms.__all__:
        assert getattr(ms, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = ms.evalute


def test_skipping_concerns_only_the_task_that_misses_the_query():
    truth = Judgements.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 10, 1)])
    vcmr = Run.from_groups(["a"], [1], ["v"], [0], [10], task="VCMR")
    svmr = Run.from_groups(["a", "b"], [1, 1], ["v", "v"], [0, 50], [10, 60], task="SVMR")
    result = ms.evaluate([vcmr, svmr], truth, protocol="tvr", missing="skip")
    assert result["R@1[IoU>=0.5,task=VCMR]"] == 1
    assert result["R@1[IoU>=0.5,task=SVMR]"] == 0.5
    assert result.missing == ("b",)


def test_a_run_that_numbers_its_sentences_otherwise_is_refused():
    truth = Judgements.from_groups(["v:0", "v:1"], [1, 1], ["v", "v"], [0, 20], [10, 30], queries=["opens", "closes"])
    same = Run.from_groups(["v:0", "v:1"], [1, 1], ["v", "v"], [0, 20], [10, 30], queries=["Opens.", "closes"])
    assert ms.evaluate(same, truth, "mIoU")["mIoU"] == 1
    other = Run.from_groups(["v:0", "v:1"], [1, 1], ["v", "v"], [20, 0], [30, 10], queries=["closes", "opens"])
    with pytest.raises(MomentseekError, match="do not number their queries alike"):
        ms.evaluate(other, truth, "mIoU")
    named = Judgements.from_groups(["7"], [1], ["v"], [0], [10], queries=["Rachel opens"])
    vague = Run.from_groups(["7"], [1], ["v"], [0], [10], queries=["a woman opens"])
    assert "other words" in ms.evaluate(vague, named, "mIoU").notes[0]


def test_predictions_outside_the_pool_are_mentioned():
    truth = Judgements.from_groups(["a"], [1], ["v"], [0], [5], pools=([2], ["v", "x"]))
    run = Run.from_rows([("a", "v", 0, 5, 2), ("a", "elsewhere", 0, 5, 1)])
    assert "1 of 2 predictions lie outside" in ms.evaluate(run, truth, protocol="mvmr").notes[0]


def test_videos_alone_have_no_times_to_measure():
    truth = Judgements.from_rows([("a", "v", 0, 10, 1)])
    run = Run.from_groups(["a"], [1], ["v"], [0], [0], task="VR")
    assert ms.evaluate(run, truth)["R@1[task=VR]"] == 1
    with pytest.raises(MomentseekError, match="has no times"):
        ms.evaluate(run, truth, "R@1[IoU>=0.5]")


def test_an_unknown_policy_for_missing_queries_is_refused():
    run, truth = two_queries()
    with pytest.raises(MomentseekError, match="missing must be error, zero or skip"):
        ms.evaluate(run, truth, missing="ignore")
