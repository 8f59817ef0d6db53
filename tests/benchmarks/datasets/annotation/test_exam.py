"""The qualification exam."""

from __future__ import annotations

import pytest

from momentseek.benchmarks.datasets.annotation.agreement import exam_json, exam_text, mark_exam, medians
from momentseek.benchmarks.datasets.annotation.labels import group_labels
from momentseek.benchmarks.datasets.common import tally
from momentseek.core.errors import MomentseekError

ROWS = [
    (pair, worker, level)
    for pair, judged in {"p1": "3340", "p2": "1121", "p3": "0004", "p4": "2222"}.items()
    for worker, level in zip(("ann", "bob", "cy", "dan"), map(int, judged), strict=True)
]


def test_median_is_rounded_up():
    labels = group_labels(
        [("a", w, r) for w, r in enumerate((1, 2, 3))] + [("b", w, r) for w, r in enumerate((0, 1, 2, 4))]
    )
    assert medians(labels).tolist() == [2, 2]


def test_who_fails_where():
    found = mark_exam(group_labels(ROWS), share=0.75)
    assert [(w.worker, w.aligned, w.passed) for w in found.workers] == [
        ("dan", 0.5, False),
        ("ann", 1.0, True),
        ("bob", 1.0, True),
        ("cy", 1.0, True),
    ]
    assert found.workers[0].misses == (("p1", 0, 3), ("p3", 4, 0))
    assert found.misaligned_share == pytest.approx(0.125)
    assert tally(found.decisions())["relabel"] == {"more than 1 from the median": 2}
    text = exam_text(found)
    assert "3 pass (75% of their labels within 1 of the truth, none missing), 1 fails" in text
    assert "dan     p1        0      3" in text
    assert exam_json(found)["workers"][0]["misses"][1] == {"pair_id": "p3", "label": 4, "truth": 0}


def test_who_left_pairs_out_does_not_pass():
    found = mark_exam(group_labels(ROWS[:-1]), share=0.0)
    assert [(w.worker, w.missing, w.passed) for w in found.workers if not w.passed] == [("dan", 1, False)]


def test_refusals():
    with pytest.raises(MomentseekError, match="pair p1 has only 2 labels"):
        mark_exam(group_labels(ROWS[:2]))
    with pytest.raises(MomentseekError, match="worker ann judged pair p1 twice"):
        mark_exam(group_labels([*ROWS, ROWS[0]]))
