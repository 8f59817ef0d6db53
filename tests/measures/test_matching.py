import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measures import matching
from momentseek.measures.alignment import Alignment
from momentseek.measures.matching import greedy, match
from momentseek.moments import Judgements, Run
from momentseek.native.library import kernels

preferences = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), max_size=12)


@pytest.fixture(params=["compiled", "numpy"], scope="module")
def kernel(request):
    if request.param == "compiled" and kernels() is None:
        pytest.skip("nothing is compiled")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(matching, "kernels", lambda: None)
        yield


@given(wishes=preferences)
def test_rounds_of_proposals_equal_taking_turns(kernel, wishes):
    row = np.array([r for r, wish in enumerate(wishes) for _ in wish], dtype=np.int64)
    judged = np.array([m for wish in wishes for m in wish], dtype=np.int64)
    taken, expected = set(), []
    for wish in wishes:
        got = next((m for m in wish if m not in taken), -1)
        taken.add(got)
        expected.append(got)
    assert greedy(row, judged, len(wishes), 10).tolist() == expected


spans = st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.integers(1, 6), st.integers(0, 4))
lists = st.lists(st.lists(spans, max_size=7), min_size=1, max_size=3)


@pytest.mark.skipif(kernels() is None, reason="nothing is compiled")
@given(
    judged=lists,
    predicted=lists,
    threshold=st.sampled_from([0.0, 0.25, 0.5]),
    strict=st.booleans(),
    absorb=st.booleans(),
)
def test_kernels_match_as_numpy_does(judged, predicted, threshold, strict, absorb):
    truth = Judgements.from_rows([(q, v, s, s + n, r) for q, rows in enumerate(judged) for v, s, n, r in rows])
    run = Run.from_rows([(q, v, s, s + n, r) for q, rows in enumerate(predicted) for v, s, n, r in rows])
    compiled = match(Alignment(run, truth), threshold, strict=strict, absorb=absorb)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "kernels", lambda: None)
        plain = match(Alignment(run, truth), threshold, strict=strict, absorb=absorb)
    assert compiled.tolist() == plain.tolist()
