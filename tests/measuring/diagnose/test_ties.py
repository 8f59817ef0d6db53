from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.ties import count_ties
from momentseek.measuring.evaluate import evaluate

TRUTH = Judgements.from_rows([(f"q{i}", "v", 0, 10, 1) for i in range(4)])


def run(*ends: float) -> Run:
    return Run.from_rows([(f"q{i}", "v", 0, end, 1.0) for i, end in enumerate(ends)])


def test_counts_ties_at_zero_at_one_and_between() -> None:
    pair = [evaluate(r, TRUTH, ["R@1[IoU>=0.5]", "AxIoU@1"]) for r in (run(1, 8, 10, 9), run(2, 9, 10, 1))]
    recall, axiou = count_ties(pair).measures
    assert (recall.ratio, recall.at_zero, recall.at_one) == (0.75, 0.25, 0.5)
    assert (axiou.ratio, axiou.at_zero, axiou.at_one) == (0.25, 0.0, 0.25)


def test_queries_that_do_not_count_are_left_out() -> None:
    part = Run.from_rows([("q0", "v", 0, 1, 1.0), ("q1", "v", 0, 8, 1.0)])
    pair = [evaluate(r, TRUTH, ["R@1[IoU>=0.5]"], missing="skip") for r in (run(1, 1, 1, 1), part)]
    report = count_ties(pair)
    assert report.queries == 2
    assert report.measures[0].ratio == 0.5


def test_one_run_cannot_tie() -> None:
    with pytest.raises(MomentseekError, match="at least two runs"):
        count_ties([evaluate(run(1, 1, 1, 1), TRUTH, ["AxIoU@1"])])


@given(st.lists(st.lists(st.integers(1, 12), min_size=4, max_size=4), min_size=2, max_size=4))
def test_ratios_are_shares_and_more_runs_never_tie_more(ends: list[list[int]]) -> None:
    found = [evaluate(run(*e), TRUTH, ["R@1[IoU>=0.5]", "AxIoU@1"]) for e in ends]
    for measure, fewer in zip(count_ties(found).measures, count_ties(found[:2]).measures, strict=True):
        assert 0 <= measure.at_zero + measure.at_one <= measure.ratio <= fewer.ratio <= 1
        assert not np.isnan(measure.ratio)
