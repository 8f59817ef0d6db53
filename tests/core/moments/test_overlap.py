import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.moment import iou, iou_hull

times = st.floats(0, 1000, allow_nan=False)
spans = st.tuples(times, times).map(sorted).filter(lambda s: s[1] - s[0] > 1e-3)


@given(spans, spans)
def test_iou_is_symmetric_bounded_and_one_only_for_equals(a, b):
    value = float(iou(a[0], a[1], b[0], b[1]))
    assert 0 <= value <= 1 + 1e-12
    assert value == float(iou(b[0], b[1], a[0], a[1]))
    assert float(iou(a[0], a[1], a[0], a[1])) == 1


@given(spans, spans)
def test_hull_equals_union_where_they_overlap_and_zero_elsewhere(a, b):
    union, hull = float(iou(*a, *b)), float(iou_hull(*a, *b, dtype=np.float64))
    assert hull == 0 if union == 0 else abs(hull - union) < 1e-9


def test_hull_is_float32_by_default():
    assert iou_hull([0.0], [1.0], [0.5], [2.0]).dtype == np.float32


def test_impossible_spans_overlap_nothing():
    for span in ((5, 5), (7, 3), (np.nan, 4), (0, np.nan)):
        assert float(iou(*span, 0, 10)) == 0


def test_thirds_match_the_official_evaluators():
    # 4.5 of 9 seconds: exactly half, so >= and > differ; 3 of 10 is below 0.3 by one bit in this operand order or not.
    assert float(iou(0, 4.5, 0, 9)) == 0.5
    assert float(iou(0.1, 3.1, 0.1, 10.1)) == (3.1 - 0.1) / ((3.1 - 0.1) + (10.1 - 0.1) - (3.1 - 0.1))
