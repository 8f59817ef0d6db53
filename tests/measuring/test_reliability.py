import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measuring.reliability import ReliabilityBin


@given(st.integers(1, 200), st.data())
def test_the_interval_holds_the_shares_for_which_the_count_is_not_surprising(count, data):
    """Wilson's ends are the shares p at which the observed one lies 1.96 standard errors of p away."""
    right = data.draw(st.integers(0, count))
    found = ReliabilityBin("x", right, count)
    low, high = found.interval
    assert 0 <= low <= right / count <= high <= 1
    for end in (low, high):
        if 1e-9 < end < 1 - 1e-9:
            error = math.sqrt(end * (1 - end) / count)
            assert abs(right / count - end) / error == pytest.approx(1.959964, abs=1e-4)


def test_the_interval_of_nothing_is_everything():
    empty = ReliabilityBin("x", 0, 0)
    assert empty.share is None
    assert empty.interval == (0.0, 1.0)
    assert ReliabilityBin("x", 5, 5).interval[1] == 1.0
    assert ReliabilityBin("x", 0, 5).interval[0] == 0.0
