from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.models.training.pairs import training_pairs

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=30)


@given(rows, st.data())
def test_related_is_what_the_whole_truth_says(entries: list[tuple[int, int, int]], data: st.DataObject) -> None:
    truth = Judgements.from_rows([(f"q{q}", f"v{v}", 0.0, 1.0, r) for q, v, r in entries] + [("x", "w", 0, 1, 1)])
    pairs = training_pairs(truth)
    queries = np.array(data.draw(st.lists(st.integers(0, len(truth) - 1), min_size=1, unique=True)))
    videos = np.array(data.draw(st.lists(st.integers(0, len(truth.videos) - 1), min_size=1, unique=True)))
    held = {(f"q{q}", f"v{v}") for q, v, r in entries if r} | {("x", "w")}
    by_hand = [[(truth.query_ids[q], truth.videos[v]) in held for v in videos] for q in queries]
    assert pairs.related_mask(queries, videos).tolist() == by_hand
    assert len(pairs) == sum(r > 0 for _, _, r in entries) + 1


def with_similarity(*values: object) -> Judgements:
    n = len(values)
    return Judgements.from_groups(
        ["q"], [n], ["a"] * n, np.zeros(n), np.ones(n), [1] * n, columns={"similarity": values}
    )


def test_similarity_becomes_a_weight_between_0_and_1() -> None:
    truth = with_similarity(0.5, -0.2, 1.3, None)
    np.testing.assert_allclose(training_pairs(truth).weight, [0.5, 0, 1, 1])
    assert training_pairs(truth, similarity=False).weight.tolist() == [1, 1, 1, 1]


def test_data_without_similarity_weigh_1() -> None:
    assert training_pairs(Judgements.from_rows([("q", "a", 0, 1, 3)])).weight.tolist() == [1.0]


@pytest.mark.parametrize("value", ["much", float("nan")], ids=["word", "nan"])
def test_a_similarity_that_is_no_number_is_said(value: object) -> None:
    with pytest.raises(MomentseekError, match="similarity must be a number"):
        training_pairs(with_similarity(0.3, value))


def test_nothing_relevant_is_said() -> None:
    with pytest.raises(MomentseekError, match="nothing to train on"):
        training_pairs(Judgements.from_rows([("q", "a", 0, 1, 0)]))
