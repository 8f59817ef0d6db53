"""MDD against its equations, written as loops over cells, at sizes small enough for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import Cells, cells, grid_2d, overlap, positions_2d, scale_overlap
from momentseek.models.registry import build
from momentseek.models.zoo.mdd import Branch, Mdd

HIDDEN, CLIPS = 6, 4


def model(**settings: object) -> Mdd:
    torch.manual_seed(0)
    small = {"hidden": HIDDEN, "max_clips": CLIPS, "longest": CLIPS, "map_layers": 1, "kernel": 3, "text_layers": 1}
    own = {"stride": 1, "heads": 2, "actions": 3, "unobserved": 2, "tree": False, **settings}
    made = build("mdd", {**small, **own}, Dims(query=5, video=7, subtitle=None))
    assert isinstance(made, Mdd)
    return made.eval()


def batch() -> Batch:
    g = torch.Generator().manual_seed(1)
    words = Words(torch.randn(3, 4, 5, generator=g), torch.ones(3, 4, dtype=torch.bool))
    clips = Clips(torch.randn(2, CLIPS, 7, generator=g), None, torch.ones(2, CLIPS, dtype=torch.bool))
    query, video = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
    times = torch.tensor([[0.0, 0.3], [0.45, 1.0], [0.2, 0.7]])
    first, last = (times[:, 0] * CLIPS).floor().long(), (times[:, 1] * CLIPS).ceil().long() - 1
    positive = torch.zeros(3, 2, dtype=torch.bool)
    positive[query, video] = True
    return Batch(words, clips, BatchPairs(query, video, first, last, torch.tensor([1.0, 0.5, 0.8]), positive, times))


def test_rejects_queries_without_a_row_per_word() -> None:
    """Five rows for three words: [CLS] and [SEP] are among them."""
    fitting = [("she opens doors", np.zeros((3, 5), np.float32))]
    strange = [("she opens doors", np.zeros((5, 5), np.float32)), ("", np.zeros((2, 5), np.float32))]
    gated = model(tree=True, parse="rules")
    gated.prepare(iter([*strange, *fitting]))
    with pytest.raises(MomentseekError, match=r"no training query's verbs and nouns are known.*set tree=false"):
        gated.prepare(iter(strange))
    model(tree=False).prepare(iter(strange))


def spans(found: Cells) -> list[tuple[int, int]]:
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def wave(place: int, column: int, dim: int) -> float:
    angle = place / 10_000 ** (2 * (column // 2) / dim)
    return math.cos(angle) if column % 2 else math.sin(angle)


def place_code(first: int, last: int, dim: int) -> list[float]:
    half = dim // 2
    return [wave(first, j, half) for j in range(half)] + [wave(last, j, dim - half) for j in range(dim - half)]


@pytest.mark.parametrize("dim", [4, 6, 7])
def test_positions_are_waves_of_first_and_last_clip(dim: int) -> None:
    ours = positions_2d(cells(5), dim)
    for row, (first, last) in enumerate(spans(cells(5))):
        assert ours[row].tolist() == pytest.approx(place_code(first, last, dim), abs=1e-6)
    grid = grid_2d(3, dim)
    assert grid.shape == (9, dim)
    for first in range(3):
        for last in range(3):
            assert grid[3 * first + last].tolist() == pytest.approx(place_code(first, last, dim), abs=1e-6)


def recovered(m: Mdd, candidates: Tensor) -> float:
    """Equation 8, the norm as a root of a mean over columns, mean over the moments of all videos."""
    assert isinstance(m.position, nn.Linear)
    weight, bias = m.position.weight, m.position.bias
    distances = []
    for moments in candidates:
        for moment, (first, last) in zip(moments, spans(m.cells), strict=True):
            code = place_code(first, last, HIDDEN)
            seen = [math.tanh(float(weight[j] @ moment + bias[j])) for j in range(HIDDEN)]
            distances.append(math.sqrt(sum((a - b) ** 2 for a, b in zip(seen, code, strict=True)) / HIDDEN))
    return sum(distances) / len(distances)


@torch.no_grad()
def test_equation_8() -> None:
    m = model()
    candidates = 3 * torch.randn(2, len(m.cells), HIDDEN)
    assert float(m.reconstruction(candidates)) == pytest.approx(recovered(m, candidates), rel=1e-5)


def expected(branch: Branch, asked: Tensor) -> Tensor:
    """Equation 12: a dictionary's entries, weighed by each head for one pair of query and moment."""
    width = HIDDEN // branch.heads
    keys, values = branch.entries @ branch.keys.weight.T, branch.entries @ branch.values.weight.T
    heads = []
    for h in range(branch.heads):
        part = slice(h * width, (h + 1) * width)
        raw = [math.exp(float(asked[part] @ key[part]) / math.sqrt(width)) for key in keys]
        heads.append(sum((r / sum(raw)) * value[part] for r, value in zip(raw, values, strict=True)))
    return torch.cat(heads)  # type: ignore[arg-type]


def scores(m: Mdd, query: Tensor, moments: Tensor) -> list[float]:
    """Equations 10 and 11 before the sigmoid, with one layer of 3 x 3 cells, for one query and one video."""
    fused = {}
    for moment, span in zip(moments, spans(m.cells), strict=True):
        mixed = moment
        if m.deconfounder is not None:
            d = m.deconfounder
            asked = d.joint(d.of_query(query) + d.of_moment(moment))
            product = torch.ones(HIDDEN)
            for branch in d.branches:
                assert isinstance(branch, Branch)
                product = product * expected(branch, asked)
            mixed = moment + product
        together = query * m.map_in(mixed)
        fused[span] = together / together.norm()
    layer = m.neighbours.convolutions[0]
    assert isinstance(layer, nn.Conv2d)
    found = []
    for first, last in spans(m.cells):
        total, seen = layer.bias.clone(), 0  # type: ignore[union-attr]
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                near = fused.get((first + down, last + right))
                if near is not None:
                    total, seen = total + layer.weight[:, :, down + 1, right + 1] @ near, seen + 1
        found.append(float(m.score.weight[0] @ (total.clamp(min=0) / seen) + m.score.bias[0]))
    return found


@pytest.mark.parametrize("confounders", ["none", "U", "L*A*U", "L*U*U"])
@torch.no_grad()
def test_equations_10_and_11(confounders: str) -> None:
    m = model(confounders=confounders)
    query, moments = torch.randn(2, HIDDEN), torch.randn(2, len(m.cells), HIDDEN)
    ours = m.logits(query, moments)
    for i in range(2):
        assert ours[i].tolist() == pytest.approx(scores(m, query[i], moments[i]), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
@torch.no_grad()
def test_equations_13_and_14(weight: float) -> None:
    m, b = model(reconstruction=weight), batch()
    assert b.pairs.times is not None
    queries, candidates = m.encode_words(b.words)["query"], m.candidates(m.encode_clips(b.clips)["clips"])
    target = scale_overlap(overlap(m.cells, b.pairs.times), 0.5, 1.0)
    assert target.any()
    total = 0.0
    for p, (q, v) in enumerate(zip(b.pairs.query.tolist(), b.pairs.video.tolist(), strict=True)):
        each = 0.0
        for logit, y in zip(scores(m, queries[q], candidates[v]), target[p].tolist(), strict=True):
            s = 1 / (1 + math.exp(-logit))
            each -= y * math.log(s) + (1 - y) * math.log(1 - s)
        total += float(b.pairs.weight[p]) * each / len(m.cells)
    terms = {"overlap": total / float(b.pairs.weight.sum())}
    if weight:
        terms["position"] = weight * recovered(m, candidates)
    ours = m.loss(b, 0, torch.Generator())
    assert {name: float(term) for name, term in ours.items()} == pytest.approx(terms, rel=1e-4)
