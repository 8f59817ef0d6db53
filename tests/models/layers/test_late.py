from __future__ import annotations

import pytest
import torch

from momentseek.models.layers import attention as late
from momentseek.models.layers.attention import best_clip


@pytest.mark.parametrize("block", [1, 50, 1 << 24])
def test_best_clip_is_the_largest_dot_product(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MAX_CLIP_SCORES", block)
    torch.manual_seed(0)
    queries, clips = torch.randn(4, 3), torch.randn(5, 6, 3)
    lengths = [6, 1, 3, 5, 2]
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    scores = best_clip(queries, clips, mask)
    for q in range(4):
        for v in range(5):
            expected = max(float(queries[q] @ clips[v, i]) for i in range(lengths[v]))
            assert scores[q, v].item() == pytest.approx(expected, rel=1e-5)


def test_gradient_reaches_only_the_best_clip() -> None:
    clips = torch.tensor([[[1.0], [3.0], [2.0]]], requires_grad=True)
    best_clip(torch.tensor([[2.0]]), clips, torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert clips.grad is not None
    assert clips.grad.flatten().tolist() == [0.0, 2.0, 0.0]


def test_no_videos_no_scores() -> None:
    assert best_clip(torch.ones(2, 3), torch.ones(0, 4, 3), torch.ones(0, 4, dtype=torch.bool)).shape == (2, 0)
