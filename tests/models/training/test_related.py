"""Videos that answer a query too, though the training set has no pair of them."""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.judgements import Judgements
from momentseek.models.training.pairs import training_pairs


def test_related_videos_are_no_negatives() -> None:
    truth = Judgements.from_rows([("q1", "a", 0, 5, 1), ("q2", "b", 7, 9, 1), ("q3", "c", 1, 2, 1)])
    pairs = training_pairs(truth, related={"q1": ["c", "elsewhere"], "q9": ["a"]})
    everything = np.arange(3)
    assert pairs.related_mask(everything, everything).tolist() == [
        [True, False, True],
        [False, True, False],
        [False, False, True],
    ]
    assert pairs.related_mask(np.array([0]), np.array([2, 1])).tolist() == [[True, False]]
