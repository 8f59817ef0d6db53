from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch, BatchPairs
from momentseek.models.losses import related_masks
from momentseek.models.zoo.mee import max_margin


@pytest.mark.parametrize("masked", [False, True], ids=["all-others", "positive-mask"])
def test_every_wrong_video_and_query_counts(make_batch: Callable[..., Batch], masked: bool) -> None:
    pairs = make_batch().pairs
    scores = torch.randn(pairs.positive.shape, generator=torch.Generator().manual_seed(0))
    found = max_margin(scores, pairs, related_masks(pairs, masked=masked), 0.2)
    for p, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        wrong = {"videos": [], "queries": []}
        for other in range(scores.shape[1]):
            if other != v and not (masked and pairs.positive[q, other]):
                wrong["videos"].append(max(0.0, 0.2 + float(scores[q, other] - scores[q, v])))
        for other in range(scores.shape[0]):
            if other != q and not (masked and pairs.positive[other, v]):
                wrong["queries"].append(max(0.0, 0.2 + float(scores[other, v] - scores[q, v])))
        expected = sum(sum(part) / len(part) for part in wrong.values() if part) / 2
        assert found[p].item() == pytest.approx(expected, abs=1e-6)


def test_a_pair_against_itself_costs_the_margin() -> None:
    pairs = BatchPairs(*(torch.arange(2) for _ in range(4)), torch.ones(2), torch.zeros(2, 2, dtype=torch.bool))
    scores = torch.tensor([[5.0, 0.0], [0.0, 5.0]])
    known = related_masks(pairs, masked=False)
    assert max_margin(scores, pairs, known, 0.2).tolist() == [0.0, 0.0]
    torch.testing.assert_close(max_margin(scores, pairs, known, 0.2, true_pairs=True), torch.tensor([0.1, 0.1]))
