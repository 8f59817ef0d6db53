from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.native.kernels import kernels
from momentseek.measuring.measures import matching
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.matching import greedy, match

preferences = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), max_size=12)


needs_kernels = pytest.mark.skipif(kernels() is None, reason="nothing is compiled")


@contextmanager
def by_numpy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "kernels", lambda: None)
        yield


@pytest.mark.parametrize("how", [pytest.param(nullcontext, marks=needs_kernels, id="compiled"), by_numpy])
@given(wishes=preferences)
def test_rounds_of_proposals_equal_taking_turns(how, wishes):
    row = np.array([r for r, wish in enumerate(wishes) for _ in wish], dtype=np.int64)
    judged = np.array([m for wish in wishes for m in wish], dtype=np.int64)
    taken, expected = set(), []
    for wish in wishes:
        got = next((m for m in wish if m not in taken), -1)
        taken.add(got)
        expected.append(got)
    with how():
        assert greedy(row, judged, len(wishes), 10).tolist() == expected


spans = st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.integers(1, 6), st.integers(0, 4))
lists = st.lists(st.lists(spans, max_size=7), min_size=1, max_size=3).map(
    lambda lists: [(q, v, s, s + n, r) for q, rows in enumerate(lists) for v, s, n, r in rows]
)
cases = st.tuples(
    lists.map(Run.from_rows),
    lists.map(Judgements.from_rows),
    st.sampled_from([0.0, 0.25, 0.5]),
    st.fixed_dictionaries({"strict": st.booleans(), "absorb": st.booleans()}),
)


@needs_kernels
@given(case=cases)
def test_kernels_match_as_numpy_does(case):
    run, truth, threshold, how = case
    compiled = match(Alignment(run, truth), threshold, **how)
    with by_numpy():
        plain = match(Alignment(run, truth), threshold, **how)
    assert compiled.tolist() == plain.tolist()


@needs_kernels
@given(case=cases, ranks=st.integers(1, 9))
def test_kernels_sum_gains_as_numpy_does(case, ranks):
    run, truth, threshold, how = case
    gains = np.arange(5.0)[:, None] / np.log2(np.arange(2, ranks + 2))

    def sums():
        found = matching.sum_matched_gains(Alignment(run, truth), threshold, gains, **how)
        return found.tolist(), matching.sum_best_gains(truth, gains).tolist()

    compiled = sums()
    with by_numpy():
        assert compiled == sums()


@needs_kernels
def test_many_videos_of_one_hash_are_told_apart():
    rows = [("q", f"video {n}", 0, 10, n % 5) for n in range(700)]  # more than there are slots
    truth = Judgements.from_rows(rows)
    run = Run.from_rows([("q", f"video {n}", 0, 9, -n) for n in (*range(699, -1, -3), 700)])
    compiled = match(Alignment(run, truth), 0.5, strict=True, absorb=True)
    with by_numpy():
        plain = match(Alignment(run, truth), 0.5, strict=True, absorb=True)
    assert compiled.tolist() == plain.tolist()
    assert compiled.tolist().count(-1) == 1


@needs_kernels
def test_kernels_refuse_places_outside():
    truth = Judgements.from_rows([("q", "v", 0, 10, 4)])
    run = Run.from_rows([("q", "v", 0, 9, 1)])
    for name, places in (("query", [1]), ("query", [-1]), ("row", [1]), ("row", [-1]), ("rank", [-1])):
        view = Alignment(run, truth)
        setattr(view, name, np.array(places))
        with pytest.raises(IndexError, match="outside"):
            matching.sum_matched_gains(view, 0.5, np.ones((5, 1)), strict=True, absorb=True)
    with pytest.raises(IndexError, match="outside"):
        matching.sum_best_gains(truth, np.ones((4, 1)))
