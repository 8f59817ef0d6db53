import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measuring.reliability import ReliabilityBin, bins_by_level, bins_by_score, save_reliability


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


@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=60), st.integers(1, 8))
def test_bins_by_score_hold_every_hit_once_in_order(hits, count):
    bins = bins_by_score(hits, count)
    assert sum(each.count for each in bins) == len(hits)
    assert sum(each.right for each in bins) == sum(right for _, right in hits)
    assert max((each.count for each in bins), default=0) - min((each.count for each in bins), default=0) <= 1
    means = [float(each.name) for each in bins]
    assert means == sorted(means)


def test_a_diagram_is_the_same_file_for_the_same_figures(tmp_path):
    pytest.importorskip("matplotlib")
    hits = [("fair", True), ("fair", False), ("strong", True)]
    panels = {"level": {"first hits": bins_by_level(hits, ["weak", "fair", "strong"]), "none": []}}
    files = [save_reliability(panels, tmp_path / name) for name in ("a", "b")]
    assert [path.name for path in files[0]] == ["reliability.png", "reliability.svg"]
    assert files[0][1].read_bytes() == files[1][1].read_bytes()
    assert "strong" in files[0][1].read_text() or "<svg" in files[0][1].read_text()
