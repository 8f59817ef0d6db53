"""Edge labels and their loss against equations 10 to 12, in loops."""

from __future__ import annotations

import math

import pytest
import torch

from momentseek.models.zoo.bet import edge_labels, edge_loss


@pytest.mark.parametrize("printed", [False, True])
def test_labels_follow_the_equation(printed: bool) -> None:
    start, end, k = torch.tensor([0, 2, 3]), torch.tensor([0, 5, 4]), 3.0
    starts, ends = edge_labels(start, end, 6, k, printed)
    for row, (s, e) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        for i in range(6):
            inside, more = s <= i <= e, not printed
            assert starts[row, i].item() == pytest.approx(
                ((e - i + more) / (e - s + 1)) ** k if inside else 0, rel=1e-5
            )
            assert ends[row, i].item() == pytest.approx(((i - s + more) / (e - s + 1)) ** k if inside else 0, rel=1e-5)


def test_as_printed_a_moment_of_one_clip_has_no_label() -> None:
    one = torch.tensor([2])
    assert edge_labels(one, one, 4, 10.0, printed=True)[0].sum() == 0
    assert edge_labels(one, one, 4, 10.0)[0][0, 2] == 1


def test_loss_is_the_mean_cross_entropy_of_both_edges_over_real_clips() -> None:
    g = torch.Generator().manual_seed(0)
    x, z = torch.randn(2, 5, generator=g), torch.randn(2, 5, generator=g)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    labels = edge_labels(torch.tensor([1, 0]), torch.tensor([3, 2]), 5, 2.0)
    ours = edge_loss((x, z), labels, mask)
    for n in range(2):
        total = 0.0
        clips = int(mask[n].sum())
        for logits, label in ((x, labels[0]), (z, labels[1])):
            for i in range(clips):
                p, y = 1 / (1 + math.exp(-logits[n, i].item())), label[n, i].item()
                total -= y * math.log(p) + (1 - y) * math.log(1 - p)
        assert ours[n].item() == pytest.approx(total / clips / 2, rel=1e-5)
