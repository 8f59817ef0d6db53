"""CET and BET against their equations (CroCs, appendix C.2), token by token."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.bet import Bet
from momentseek.models.zoo.cet import Cet

HIDDEN, HEADS, CLIPS = 4, 2, 5
COUNTS, ASKED = (5, 3), (2, 4)
SETTINGS = {"hidden": HIDDEN, "heads": HEADS, "layers": 2, "max_clips": CLIPS, "longest": 4, "dropout": 0.0}
DIMS = Dims(query=6, video=7, subtitle=None)


def inputs() -> tuple[Words, Clips]:
    g = torch.Generator().manual_seed(3)
    asked = torch.arange(max(ASKED)) < torch.tensor(ASKED)[:, None]
    seen = torch.arange(CLIPS) < torch.tensor(COUNTS)[:, None]
    words, clips = torch.randn(2, max(ASKED), 6, generator=g), torch.randn(2, CLIPS, 7, generator=g)
    return Words(words * asked[..., None], asked), Clips(clips * seen[..., None], None, seen)


def normed(layer: nn.LayerNorm, x: Tensor) -> Tensor:
    mean = sum(x.tolist()) / len(x)
    spread = sum((value - mean) ** 2 for value in x.tolist()) / len(x)
    return layer.weight * (x - mean) / math.sqrt(spread + layer.eps) + layer.bias


def encoded(stack: nn.TransformerEncoder, tokens: list[Tensor]) -> list[Tensor]:
    """TransformerEnc of real tokens only: attention of each to each by each head, then a network, both added."""
    width = HIDDEN // HEADS
    for layer in stack.layers:
        assert isinstance(layer, nn.TransformerEncoderLayer)
        weight, bias = layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias
        asks, keys, values = (
            [weight[i * HIDDEN : (i + 1) * HIDDEN] @ t + bias[i * HIDDEN : (i + 1) * HIDDEN] for t in tokens]
            for i in range(3)
        )
        after = []
        for token, ask in zip(tokens, asks, strict=True):
            heads = []
            for h in range(HEADS):
                part = slice(h * width, (h + 1) * width)
                raw = [math.exp(float(ask[part] @ key[part]) / math.sqrt(width)) for key in keys]
                heads.append(sum((r / sum(raw)) * value[part] for r, value in zip(raw, values, strict=True)))
            x = normed(layer.norm1, token + layer.self_attn.out_proj(torch.cat(heads)))  # type: ignore[arg-type]
            inner = layer.linear1(x)
            gelu = torch.tensor([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in inner.tolist()])
            after.append(normed(layer.norm2, x + layer.linear2(gelu)))
        tokens = after
    return tokens


def affine(layer: nn.Linear, x: Tensor) -> Tensor:
    return torch.stack([w @ x + b for w, b in zip(layer.weight, layer.bias, strict=True)])


def network(layers: nn.Sequential, x: Tensor) -> Tensor:
    """The three layers of MLP_s and MLP_e."""
    one, _, two, _, three = layers
    assert isinstance(one, nn.Linear)
    assert isinstance(two, nn.Linear)
    assert isinstance(three, nn.Linear)
    return affine(three, affine(two, affine(one, x).clamp(min=0)).clamp(min=0))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def clip_tokens(m: Bet | Cet, clips: Clips, v: int) -> list[Tensor]:
    assert clips.video is not None
    return [affine(m.clips.joint.linear, clips.video[v, i]) + m.clips.positions[i] for i in range(COUNTS[v])]


def check(m: Bet | Cet, words: Words, clips: Clips, expected: list[tuple[list[float], list[float]]]) -> None:
    """A span's score is the product of both probabilities; there is none outside the video."""
    both = torch.arange(2)
    grids = m.spans(take_rows(m.encode_words(words), both), take_rows(m.encode_clips(clips), both)).exp()
    for grid, (starts, ends) in zip(grids, expected, strict=True):
        for first in range(CLIPS):
            for length in range(1, 5):
                inside = first + length <= len(starts)
                value = starts[first] * ends[first + length - 1] if inside else 0.0
                assert float(grid[first, length - 1]) == pytest.approx(value, rel=1e-4)


@torch.no_grad()
def test_cet_follows_equations_7_to_9() -> None:
    torch.manual_seed(0)
    m = build("cet", SETTINGS, DIMS).eval()
    assert isinstance(m, Cet)
    words, clips = inputs()
    expected = []
    for i in range(2):
        seen = clip_tokens(m, clips, i)
        asked = [affine(m.words, words.features[i, k]) + m.places[k] for k in range(ASKED[i])]
        joint = encoded(m.together, seen + asked)[: len(seen)]
        starts, ends = ([sigmoid(float(network(mlp, h))) for h in joint] for mlp in (m.start, m.end))
        expected.append((starts, ends))
    check(m, words, clips, expected)


@pytest.mark.parametrize("sharpness", [1.0, 10.0])
@torch.no_grad()
def test_bet_follows_equations_13_to_15(sharpness: float) -> None:
    torch.manual_seed(0)
    m = build("bet", {**SETTINGS, "sharpness": sharpness}, DIMS).eval()
    assert isinstance(m, Bet)
    words, clips = inputs()
    expected = []
    for i in range(2):
        context = encoded(m.context, clip_tokens(m, clips, i))
        asked = [affine(m.words, words.features[i, k]) for k in range(ASKED[i])]
        pooled = torch.tensor([sum(float(a[j]) for a in asked) / len(asked) for j in range(HIDDEN)])
        sides = []
        for mlp in (m.start, m.end):
            wanted = network(mlp, pooled)
            cosines = [float(h @ wanted) / math.sqrt(float(h @ h) * float(wanted @ wanted)) for h in context]
            sides.append([sigmoid(sharpness * c) for c in cosines])
        expected.append((sides[0], sides[1]))
    check(m, words, clips, expected)
