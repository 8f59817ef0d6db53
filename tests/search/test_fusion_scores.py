from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.search.fusion import FUSIONS, LEVEL_STEP, Candidate, falling_fit, rank_candidates

STREAMS = ("vision", "speech", "name")
LEVELS = ("strong", "fair", "weak")
STREAM = st.tuples(st.floats(-1, 20), st.sampled_from(LEVELS))
MOMENTS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(STREAMS, STREAM)), max_size=12)


def candidates(moments) -> list[Candidate]:
    """Each stream ranks by its scores."""
    made = [Candidate(1, 10.0 * i, 10.0 * i + 5, 10.0 * i) for i in range(len(moments))]
    for stream in STREAMS:
        seen = sorted((i for i, m in enumerate(moments) if stream in m), key=lambda i: -moments[i][stream][0])
        for rank, i in enumerate(seen, 1):
            made[i].add_stream(stream, rank, *moments[i][stream])
    return made


def test_how_much_better_counts_where_ranks_would_not_tell():
    # seen: the first by far; said: the second by little
    moments = [
        {"vision": (0.40, "strong"), "speech": (9.9, "strong")},
        {"vision": (0.30, "strong"), "speech": (10.0, "strong")},
    ]
    unit = {"vision": 0.1}
    far, near = candidates(moments)
    assert rank_candidates([far, near], "rrf", unit)[0].score == rank_candidates([far, near], "rrf", unit)[1].score
    assert rank_candidates([near, far], "scores", unit) == [far, near]
    moments[1]["speech"] = (20.0, "strong")
    moments[0]["vision"] = (0.301, "strong")
    far, near = candidates(moments)
    assert rank_candidates([far, near], "scores", unit) == [near, far]


@pytest.mark.parametrize("name", sorted(FUSIONS))
@given(MOMENTS, st.floats(0.01, 5))
def test_every_fusion_keeps_to_levels_and_to_what_streams_say(name, moments, unit):
    order = rank_candidates(candidates(moments), name, {"vision": unit})
    levels = [LEVELS.index(c.level) for c in order]
    assert levels == sorted(levels)
    for c in order:
        assert 0 <= c.score - LEVEL_STEP * (2 - LEVELS.index(c.level)) < LEVEL_STEP
    for one, other in pairwise(order):
        if set(one.ranks) == set(other.ranks) and one.levels == other.levels:
            # nobody goes first whom all streams put behind
            assert not one.ranks or any(
                one.ranks[s].rank < other.ranks[s].rank or one.score == other.score for s in one.ranks
            )


def test_weaker_moments_do_not_change_the_order_of_better_ones():
    """The order of moments must not depend on how many weaker ones were found."""
    moments = [{"vision": (0.5 - i / 100, "fair"), "speech": (5.0 + i, "fair")} for i in range(5)]
    few = rank_candidates(candidates(moments), "scores", {"vision": 0.2})
    more = moments + [{"vision": (0.3 - i / 50, "weak")} for i in range(9)]
    many = rank_candidates(candidates(more), "scores", {"vision": 0.2})
    assert [(c.start, c.score) for c in many[:5]] == [(c.start, c.score) for c in few]


@given(st.lists(st.floats(-100, 100), max_size=20))
def test_levelled_values_fall_and_keep_their_mean(values):
    level = falling_fit(values)
    assert all(a >= b - 1e-9 for a, b in pairwise(level))
    assert np.sum(level) == pytest.approx(np.sum(values), abs=1e-6)
    if values == sorted(values, reverse=True):
        assert level == values


def test_unknown_and_doubled_names_are_refused():
    with pytest.raises(MomentseekError, match="there are rrf, scores"):
        FUSIONS["magic"]
    with pytest.raises(MomentseekError, match="already exists"):
        FUSIONS.register("rrf")(FUSIONS["rrf"])
