from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.annotators import (
    ANNOTATOR_MEASURES,
    by_annotator,
    match_reannotations,
    stability,
    tau_b,
)
from momentseek.measuring.formats import read_run, read_truth
from momentseek.measuring.measures import parse_all

TRUTH = Judgements.from_groups(
    ["a:0", "a:1", "b:0"],
    [1, 1, 1],
    ["a", "a", "b"],
    [0, 10, 5],
    [10, 20, 15],
    durations={"a": 20.0, "b": 50.0},
    queries=["Person opens a door.", "person sits", "a dog barks"],
)


def again(rows: list[tuple[str, str, str, list[tuple[float, float]]]]) -> Judgements:
    """As the hidden-challenges reader gives it: a query per HIT, times in percent of 100 s."""
    flat = [(video, s, e) for _, video, _, times in rows for s, e in times]
    return Judgements.from_groups(
        [r[0] for r in rows],
        [len(r[3]) for r in rows],
        [f[0] for f in flat],
        [f[1] for f in flat],
        [f[2] for f in flat],
        durations={f[0]: 100.0 for f in flat},
        queries=[r[2] for r in rows],
        columns={"annotator": [i for r in rows for i in range(len(r[3]))]},
        invalid="keep",
    )


HITS = again(
    [
        ("H1", "a", "person opens a door", [(0, 50), (0, 25)]),
        ("H2", "b", "A dog barks!", [(10, 30), (10, 50)]),
        ("H3", "c", "nobody knows this one", [(0, 10), (0, 20)]),
    ]
)


def test_matches_by_video_and_sentence_and_scales_to_seconds() -> None:
    found = match_reannotations([HITS], TRUTH)
    assert found.place.tolist() == [0, 2]
    assert found.start.tolist() == [[0, 0], [5, 5]]
    assert found.end.tolist() == [[10, 5], [15, 25]]
    assert (found.asked, found.annotators) == (3, 2)
    assert found.truth_of(TRUTH, 1).moments("b:0")[0].end == 25


def test_each_annotator_is_the_truth_in_turn() -> None:
    run = Run.from_rows([("a:0", "a", 0, 10, 1.0), ("a:1", "a", 0, 1, 1.0), ("b:0", "b", 5, 15, 1.0)])
    worse = Run.from_rows([("a:0", "a", 0, 5, 1.0), ("a:1", "a", 0, 1, 1.0), ("b:0", "b", 5, 24, 1.0)])
    report = by_annotator([("ours", run), ("other", worse)], TRUTH, [HITS], parse_all(["AxIoU@1", "R@1[IoU>=0.7]"]))
    first = report.scores[0]
    assert (first.original, first.by_annotator) == (1.0, (1.0, 0.5))
    assert (first.mean, first.low, first.high) == (0.75, 0.5, 1.0)
    assert first.sd == pytest.approx(np.std([1.0, 0.5], ddof=1))
    assert report.agreement == pytest.approx(0.5)
    assert report.agreement_with_truth == pytest.approx(0.75)
    assert [s.winner_changes for s in report.stability] == [1.0, 1.0]
    assert report.stability[0].tau == -1


def test_queries_with_broken_or_too_few_moments_are_left_out_and_noted() -> None:
    table = again(
        [
            ("H1", "a", "person opens a door", [(0, 50), (0, 25)]),
            ("H2", "b", "a dog barks", [(10, 30)]),
            ("H4", "a", "person sits", [(10, 10), (0, 5)]),
        ]
    )
    found = match_reannotations([table], TRUTH)
    assert found.place.tolist() == [0]
    assert len(found.notes) == 2


def test_needs_sentences_matches_and_durations() -> None:
    with pytest.raises(MomentseekError, match="no sentences"):
        match_reannotations([HITS], Judgements.from_rows([("q", "a", 0, 1, 1)]))
    with pytest.raises(MomentseekError, match="none of the 1 re-annotated"):
        match_reannotations([again([("H", "z", "x", [(0, 1)])])], TRUTH)
    bare = Judgements.from_groups(["q"], [1], ["a"], [0], [1], queries=["person opens a door"])
    with pytest.raises(MomentseekError, match="`videos`"):
        match_reannotations([HITS], bare)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    expected = scipy.stats.kendalltau(x, y).statistic if len(set(x)) > 1 and len(set(y)) > 1 else np.nan
    assert tau_b(x, y) == pytest.approx(expected, nan_ok=True)


def test_judges_who_share_a_best_system_agree() -> None:
    assert stability(np.array([[1.0, 1.0, 0.0], [1.0, 0.5, 0.0]]))[1] == 0


def test_real_annotators(data: Path) -> None:
    """1,000 Charades-STA queries were annotated anew; 213 of them are in Charades-CD's test-ood."""
    truth = read_truth(data / "charades-cd/charades_test_ood.json")
    run = read_run(data / "predictions/shuffling_charades_cd_test_ood.json", invalid="keep")
    files = sorted((data / "hidden-challenges/charades/re-annotated").glob("*.csv"))
    tables = [read_truth(f, format="hidden-challenges") for f in files]
    report = by_annotator([("shuffling", run)], truth, tables, parse_all(ANNOTATOR_MEASURES))
    assert (report.queries, report.asked, report.annotators) == (213, 1000, 5)
    assert report.agreement == pytest.approx(0.51, abs=0.01)
    scores = {s.measure: s for s in report.scores}
    assert scores["AxIoU@1"].sd < 0.25 * scores["R@1[IoU>=0.5]"].sd
