"""Queries without an answer: rates at levels, against loops and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek import Judgements, Run, evaluate
from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures import parse
from momentseek.measuring.measures.alignment import Alignment

TRUTH = Judgements.from_groups(
    ["dog", "cat", "zebra", "unicorn"], [1, 1, 1, 0], ["v", "v", "v"], [0, 5, 0], [4, 9, 60], [1, 3, 0]
)
RUN = Run.from_groups(
    ["dog", "cat", "zebra", "unicorn"], [1, 0, 2, 0], ["v", "v", "w"], [0, 1, 2], [4, 2, 3], [0.9, 0.2, 0.7]
)


def test_by_hand() -> None:
    found = evaluate(RUN, TRUTH, ["FalseAlarm", "FalseAlarm[level=0.8]", "FalseRejection", "RejectionAUC"])
    # zebra (no relevant moment) is answered, unicorn is not; cat (relevant) is not answered, dog is
    assert found.means == {
        "FalseAlarm": 0.5,
        "FalseAlarm[level=0.8]": 0.0,
        "FalseRejection": 0.5,
        "RejectionAUC": 0.625,
    }
    assert found.missing == ()


def test_an_empty_list_is_an_answer_but_a_query_left_out_is_not() -> None:
    some = Run.from_groups(["dog"], [1], ["v"], [0], [4])
    with pytest.raises(MomentseekError, match=r"3 queries \(cat, zebra, unicorn\) have no predictions"):
        evaluate(some, TRUTH, ["FalseAlarm"])
    assert evaluate(some, TRUTH, ["FalseRejection"], missing="zero")["FalseRejection"] == 0.5
    assert evaluate(some, TRUTH, ["FalseRejection"], missing="skip")["FalseRejection"] == 0.0
    with pytest.raises(MomentseekError, match="no predictions"):  # other measures still refuse an empty list
        evaluate(RUN, TRUTH, ["mIoU"])


scores = st.one_of(st.none(), st.sampled_from([0.1, 0.4, 0.4, 0.7, 1.0]))


@given(st.lists(st.tuples(st.booleans(), scores), min_size=1, max_size=12), st.integers(1, 100))
def test_rates_are_what_loops_count(cases: list[tuple[bool, float | None]], keep: int) -> None:
    ids = [str(i) for i in range(len(cases))]
    n = len(cases)
    truth = Judgements.from_groups(ids, [1] * n, ["v"] * n, [0] * n, [9] * n, [int(known) for known, _ in cases])
    there = [score for _, score in cases if score is not None]
    counts = [int(score is not None) for _, score in cases]
    run = Run.from_groups(ids, counts, ["v"] * len(there), [0] * len(there), [5] * len(there), there)
    view = Alignment(run, truth)
    with_answer = sorted((-math.inf if s is None else s for known, s in cases if known), reverse=True)
    level = with_answer[math.ceil(len(with_answer) * keep / 100) - 1] if with_answer else math.inf
    for name, limit in (("", -math.inf), ("[level=0.4]", 0.4), (f"[keep={keep}]", level)):
        alarm, rejection = parse(f"FalseAlarm{name}")(view), parse(f"FalseRejection{name}")(view)
        for i, (known, score) in enumerate(cases):
            answered = score is not None and score >= limit
            assert alarm[i] == float(answered) if not known else np.isnan(alarm[i])
            assert rejection[i] == float(not answered) if known else np.isnan(rejection[i])
    pairs = [
        1.0 if one > two else 0.5 if one == two else 0.0
        for one in with_answer
        for two in [-math.inf if s is None else s for known, s in cases if not known]
    ]
    area = parse("RejectionAUC")
    assert area.summarise(area(view)) == pytest.approx(np.mean(pairs) if pairs else math.nan, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("FalseAlarm[level=0.5,keep=90]", "give a level or keep, not both"),
        ("FalseAlarm[keep=0]", "keep is a percentage from 1 to 100"),
        ("FalseAlarm[level=high]", "'high' is not a number"),
        ("FalseAlarm[keep=5.5]", "keep must be a whole number"),
    ],
)
def test_levels_that_make_no_sense(name: str, sentence: str) -> None:
    with pytest.raises(MomentseekError, match=sentence):
        parse(name)
