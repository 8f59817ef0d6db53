import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measures.matching import greedy

preferences = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), max_size=12)


@given(preferences)
def test_rounds_of_proposals_equal_taking_turns(wishes):
    row = np.array([r for r, wish in enumerate(wishes) for _ in wish], dtype=np.int64)
    judged = np.array([m for wish in wishes for m in wish], dtype=np.int64)
    taken, expected = set(), []
    for wish in wishes:
        got = next((m for m in wish if m not in taken), -1)
        taken.add(got)
        expected.append(got)
    assert greedy(row, judged, len(wishes), 10).tolist() == expected
