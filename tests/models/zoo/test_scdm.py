"""SCDM: modulation, anchors, decoding and loss, written out as loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.zoo.scdm import Modulation, Scdm, ScdmConfig, anchors_of, norm_over_time


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(**settings: object) -> Scdm:
    torch.manual_seed(0)
    small = {"hidden": 4, "max_clips": 8, "head": 3, "dropout": 0.0}
    return Scdm(ScdmConfig(**{**small, **settings}), Dims(3, 5, None)).double().eval()  # type: ignore[arg-type]


@torch.no_grad()
def test_scale_and_shift_come_from_the_words_attended_to_at_each_step() -> None:
    layer = Modulation(2, "words").double()
    x, words = random(1, 4, 2), random(1, 3, 2, seed=1)
    mask, there = torch.tensor([[True, True, True, False]]), torch.tensor([[True, True, False]])
    found = layer(x, mask, words, there, words.mean(1))[0]
    mean = [sum(x[0, i, c].item() for i in range(3)) / 3 for c in range(2)]
    variance = [sum((x[0, i, c].item() - mean[c]) ** 2 for i in range(3)) / 3 for c in range(2)]
    for i in range(3):
        e = [
            math.exp(float(layer.score.weight[0] @ torch.tanh(layer.word(words[0, n]) + layer.step.weight @ x[0, i])))
            for n in range(2)
        ]
        told = sum(e[n] / sum(e) * words[0, n] for n in range(2))
        scale, shift = layer.scale(told).tanh(), layer.shift(told).tanh()
        for c in range(2):
            normal = (x[0, i, c].item() - mean[c]) / math.sqrt(variance[c] + 1e-6)
            assert found[i, c].item() == pytest.approx(scale[c].item() * normal + shift[c].item())
    assert found[3].tolist() == [0.0, 0.0]


@torch.no_grad()
def test_constant_scale_and_shift_are_plain_normalisation_that_padding_does_not_change() -> None:
    layer = Modulation(2, "sentence").double()
    for linear, bias in ((layer.scale, 20.0), (layer.shift, 0.0)):
        torch.nn.init.zeros_(linear.weight)
        torch.nn.init.constant_(linear.bias, bias)
    x, mask = random(1, 5, 2), torch.arange(5)[None] < 4
    plain = norm_over_time(x, mask)
    torch.testing.assert_close(layer(x, mask, x, mask, x.mean(1)), plain)
    torch.testing.assert_close(plain[:, :4], norm_over_time(x[:, :4], mask[:, :4]))
    torch.testing.assert_close(plain[0, :4].square().mean(0), torch.ones(2).double(), rtol=1e-4, atol=1e-4)


def test_anchors_are_four_to_a_cell() -> None:
    found = anchors_of(8, [2, 1]).tolist()
    assert found[:4] == [[2.0, 1.0], [2.0, 2.0], [2.0, 3.0], [2.0, 4.0]]
    assert found[8:] == [[4.0, 2.0], [4.0, 4.0], [4.0, 6.0], [4.0, 8.0]]


@torch.no_grad()
def test_anchors_are_corrected_cut_to_the_video_and_dropped_if_too_long() -> None:
    model = make()
    logits, moved = random(1, 12), random(1, 12, 2, seed=1).tanh()
    model.detect = lambda queries, videos: (logits, moved)  # type: ignore[method-assign]
    start, end, score = model.moments({}, {"mask": torch.arange(8)[None] < 6})
    for i, (c, w) in enumerate(model.anchors.tolist()):
        centre, width = c + 0.1 * w * moved[0, i, 0].item(), w * math.exp(0.1 * moved[0, i, 1].item())
        first, last = max(0.0, centre - width / 2), min(6.0, centre + width / 2)
        if last - first < 1 or width > 6:
            assert score[0, i] == -torch.inf
        else:
            assert [start[0, i].item(), end[0, i].item()] == pytest.approx([first / 6, last / 6])
            assert score[0, i].item() == pytest.approx(-math.log(1 + math.exp(-logits[0, i].item())))
    assert score[0, 12] == -torch.inf
    logits.fill_(-1e9)
    moved.fill_(-50.0)  # every anchor shrinks to less than a clip
    assert [x[0, 12].item() for x in model.moments({}, {"mask": torch.arange(8)[None] < 6})] == [0.0, 1.0, 0.0]


def test_the_loss_is_a_mean_over_each_group_of_anchors_of_each_map() -> None:
    model = make(hard_logit=0.0)
    there, n = torch.arange(8) < torch.tensor([[8], [6]]), torch.arange(2)
    times = torch.tensor([[0.1, 0.45], [0.3, 0.9]], dtype=torch.float64)
    pairs = BatchPairs(n, n, n, n, torch.ones(2).double(), torch.eye(2, dtype=torch.bool), times)
    words = Words(random(2, 3, 3), torch.ones(2, 3, dtype=torch.bool))
    batch = Batch(words, Clips(random(2, 8, 5) * there[..., None], None, there), pairs)
    terms = model.loss(batch, 0, torch.Generator())
    logits, moved = model.detect(model.encode_words(batch.words), model.encode_clips(batch.clips))
    centre, width = model.decode(moved)
    expected = dict.fromkeys(terms, 0.0)
    for begin, end in ((0, 8), (8, 12)):
        sums: dict[str, list[float]] = {name: [] for name in terms}
        for p, (a, b) in enumerate((times * torch.tensor([[8.0], [6.0]])).tolist()):
            for i in range(begin, end):
                c, w = model.anchors[i].tolist()
                if c - w / 2 >= (8, 6)[p]:
                    continue
                shared = max(0.0, min(b, c + w / 2) - max(a, c - w / 2))
                iou = shared / (w + b - a - shared)
                x = logits[p, i]
                value = F.binary_cross_entropy_with_logits(x, torch.tensor(iou).double()).item()
                if iou > 0.5:
                    sums["right"].append(value)
                    sums["centre"].append(F.smooth_l1_loss(centre[p, i], torch.tensor((a + b) / 2).double()).item())
                    sums["width"].append(F.smooth_l1_loss(width[p, i], torch.tensor(b - a).double()).item())
                elif iou < 0.3:
                    sums["hard" if x.item() > 0 else "easy"].append(value)
        weights = {"right": 100, "hard": 50, "easy": 50, "centre": 50, "width": 20}
        for name, values in sums.items():
            expected[name] += weights[name] * sum(values) / max(1, len(values))
    assert {name: value.item() for name, value in terms.items()} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_clips": 3}, "max_clips must be at least 4"),
        ({"maps": 6}, "maps must be from 1 to 5 for 64 clips, not 6"),
        ({"modulation": "global"}, "modulation must be words or sentence or none"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(MomentseekError, match=f"^model: .*{said}"):
        ScdmConfig(**settings)  # type: ignore[arg-type]
