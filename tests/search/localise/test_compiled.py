"""What the kernels find is what numpy finds, to the last bit; and what makes no sense is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from momentseek.core.native.kernels import every_processor, kernels
from momentseek.search.localise.height import compiled_stretches, python_stretches
from momentseek.search.localise.scenes import clear_changes, clearness, feature_change

pytestmark = pytest.mark.skipif(kernels() is None, reason="the kernels are not built")
numbers = st.floats(-1, 1, width=32)


@given(
    dim=st.sampled_from([1, 3, 8, 17, 130, 256, 300]),
    clips=st.integers(2, 30),
    seed=st.integers(0, 2**16),
    still=st.booleans(),
)
def test_changes_are_equal_to_the_last_bit(dim: int, clips: int, seed: int, still: bool) -> None:
    rows = np.random.default_rng(seed).standard_normal((clips, dim)).astype(np.float32)
    if still:  # most clips are like the one before
        rows = np.repeat(rows, 5, axis=0)[:clips]
    want = clearness(feature_change(rows))
    assert clear_changes(rows).tobytes() == want.tobytes()
    assert clear_changes(np.asfortranarray(rows)).tobytes() == want.tobytes()
    with every_processor():
        assert clear_changes(rows).tobytes() == want.tobytes()


@given(
    curves=st.lists(arrays(np.float32, st.integers(1, 60), elements=numbers), min_size=1, max_size=4),
    edges=st.sets(st.integers(1, 59)),
    base=numbers,
    spread=st.floats(1e-3, 0.5),
)
def test_stretches_are_the_same_together_and_alone(
    curves: list[np.ndarray], edges: set[int], base: float, spread: float
) -> None:
    places = [np.array(sorted(edge for edge in edges if edge < len(scores)), np.int64) for scores in curves]
    given = np.concatenate(curves), np.cumsum([0, *map(len, curves)]), places
    found, want = (find(*given, base, spread) for find in (compiled_stretches, python_stretches))
    assert [column.tolist() for column in found] == [column.tolist() for column in want]
    alone = [
        compiled_stretches(scores, np.array([0, len(scores)]), [some], base, spread)
        for scores, some in zip(curves, places, strict=True)
    ]
    assert [column.tolist() for column in found] == [np.concatenate(c).tolist() for c in zip(*alone, strict=True)]


def compiled_on(scores: np.ndarray, edges: list[int], base: float, spread: float) -> list[list[int]]:
    found = compiled_stretches(scores, np.array([0, len(scores)]), [np.array(edges, np.int64)], base, spread)
    return [column.tolist() for column in found]


def test_the_last_of_equal_clips_is_not_preferred_to_the_first() -> None:
    assert compiled_on(np.full(8, 0.5, np.float32), [4], 0.1, 0.01) == [[1], [0], [0], [8]]


@pytest.mark.parametrize("edges", [[0], [8], [-1], [3, 3], [5, 2]])
def test_edges_outside_or_out_of_order_are_refused(edges: list[int]) -> None:
    with pytest.raises(IndexError):
        compiled_on(np.full(8, 0.1, np.float32), edges, 0.0, 0.1)


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 8], [0, 0], [0, 8, 4]])
def test_videos_outside_of_the_scores_are_refused(offsets: list[int]) -> None:
    places = [np.zeros(0, np.int64)] * (len(offsets) - 1)
    with pytest.raises(IndexError):
        compiled_stretches(np.full(8, 0.1, np.float32), np.array(offsets), places, 0.0, 0.1)
