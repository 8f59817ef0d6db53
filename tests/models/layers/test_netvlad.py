from __future__ import annotations

import math

import torch

from momentseek.models.layers.attention import NetVLAD
from momentseek.models.zoo.conquer import ModalityWeights, fuse


def by_hand(layer: NetVLAD, x: torch.Tensor) -> torch.Tensor:
    clusters, dim = layer.centres.shape
    gathered = []
    for k in range(clusters):
        total = torch.zeros(dim)
        for t in range(len(x)):
            logits = [float(layer.assign.weight[j] @ x[t] + layer.assign.bias[j]) for j in range(clusters)]
            share = math.exp(logits[k]) / sum(map(math.exp, logits))
            total += share * (x[t] - layer.centres[k])
        gathered.append(total / total.norm())
    whole = torch.cat(gathered)
    return whole / whole.norm()


@torch.no_grad()
def test_netvlad_gathers_what_lies_beyond_each_centre() -> None:
    torch.manual_seed(0)
    layer, x = NetVLAD(4, 3), torch.randn(2, 5, 4)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    found = layer(x, mask)
    assert found.shape == (2, layer.width)
    torch.testing.assert_close(found[0], by_hand(layer, x[0]))
    torch.testing.assert_close(found[1], by_hand(layer, x[1, :2]))


@torch.no_grad()
def test_without_a_mask_padding_is_shared_out_too() -> None:
    torch.manual_seed(0)
    layer, x = NetVLAD(4, 3, masked=False), torch.randn(2, 5, 4)
    found = layer(x, torch.arange(5) < torch.tensor([[5], [2]]))
    torch.testing.assert_close(found[1], by_hand(layer, x[1]))


def test_statistics_of_a_batch_are_those_of_its_words() -> None:
    layer, x = NetVLAD(4, 3, norm="batch"), torch.randn(2, 5, 4)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    layer(x, mask)
    products = layer.assign(x[mask])
    torch.testing.assert_close(layer.norm.running_mean, 0.1 * products.mean(0))


@torch.no_grad()
def test_the_order_of_words_does_not_matter() -> None:
    torch.manual_seed(1)
    layer, x = NetVLAD(4, 2), torch.randn(1, 6, 4)
    everything = torch.ones(1, 6, dtype=torch.bool)
    torch.testing.assert_close(layer(x, everything), layer(x[:, torch.randperm(6)], everything))


@torch.no_grad()
def test_modalities_share_one_weight_per_query() -> None:
    torch.manual_seed(2)
    weigh, words = ModalityWeights(4, 3, 2), torch.randn(3, 5, 4)
    weights = weigh(words, torch.ones(3, 5, dtype=torch.bool))
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    video, subtitle = torch.randn(3, 7, 4), torch.randn(3, 7, 4)
    joined = fuse(weights, [video, subtitle])
    for i in range(3):
        torch.testing.assert_close(joined[i], weights[i, 0] * video[i] + weights[i, 1] * subtitle[i])
