"""The map against its definition, written out in loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.models.layers.moment_map import ConvolutionStack, MapConvolution, cells, max_over, overlap


@pytest.mark.parametrize(("clips", "count"), [(16, 136), (64, 1104), (128, 2548)])
def test_the_papers_numbers_of_candidates(clips: int, count: int) -> None:
    candidates = cells(clips)
    assert len(candidates) == count == int(candidates.mask().sum())
    assert int(candidates.end.max()) == clips - 1


def test_long_candidates_lie_on_coarser_grids() -> None:
    c = cells(64)
    for length, stride in ((16, 1), (18, 2), (32, 2), (36, 4), (64, 4)):
        here = c.start[c.length == length]
        assert here.tolist() == list(range(0, 64 - length + 1, stride))
    assert not (c.length == 17).any()


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 70), st.integers(0, 5))
def test_max_over_is_the_maximum_of_each_cells_clips(clips: int, seed: int) -> None:
    c = cells(clips)
    x = torch.randn(2, clips, 3, generator=torch.Generator().manual_seed(seed))
    brute = torch.stack([x[:, s : s + n].amax(1) for s, n in zip(c.start, c.length, strict=True)], 1)
    assert torch.equal(max_over(x, c), brute)


@pytest.mark.parametrize("clips", [7, 16, 40, 64])
def test_a_stack_of_convolutions_sees_exactly_its_cells_clips(clips: int) -> None:
    c = cells(clips)
    stack = ConvolutionStack(1, clips)
    for parameter in stack.parameters():
        torch.nn.init.constant_(parameter, 1.0 if parameter.ndim == 3 else 0.0)
    seen = stack(torch.eye(clips).unsqueeze(2), c)[..., 0] > 0
    for cell, (start, length) in enumerate(zip(c.start.tolist(), c.length.tolist(), strict=True)):
        assert seen[:, cell].nonzero().flatten().tolist() == list(range(start, start + length))


def test_map_and_cells_are_each_others_inverse() -> None:
    c = cells(20)
    x = torch.randn(3, len(c), 4)
    maps = c.as_map(x)
    assert torch.equal(c.of_map(maps), x)
    assert maps[:, :, ~c.mask()].abs().max() == 0


@pytest.mark.parametrize("padding", ["each", "first"])
def test_a_cell_is_divided_by_the_valid_cells_its_kernel_saw(padding: str) -> None:
    c = cells(18)
    mask = c.mask()
    layer = MapConvolution(mask, 2, 3, 1, 3, padding=padding)
    maps = c.as_map(torch.randn(1, len(c), 2))
    out = layer(maps)
    weight, bias = layer.convolutions[0].weight, layer.convolutions[0].bias
    for i, j in ((0, 0), (3, 7), (0, 17), (5, 5)):
        total, seen = bias.clone(), 0
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if 0 <= i + di < 18 and 0 <= j + dj < 18 and mask[i + di, j + dj]:
                    seen += 1
                    total = total + weight[:, :, di + 1, dj + 1] @ maps[0, :, i + di, j + dj]
        torch.testing.assert_close(out[0, :, i, j], total.relu() / seen)


@pytest.mark.parametrize("padding", ["each", "first"])
def test_the_map_keeps_its_size_through_many_layers(padding: str) -> None:
    c = cells(16)
    out = MapConvolution(c.mask(), 2, 3, 4, 5, padding=padding)(c.as_map(torch.randn(2, len(c), 2)))
    assert out.shape == (2, 3, 16, 16)


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 0.9), st.floats(0.01, 1))
def test_overlap_is_the_packages_iou(start: float, length: float) -> None:
    from momentseek.core.moments.moment import iou

    end = min(1.0, start + length)
    c = cells(16)
    ours = overlap(c, torch.tensor([[start, end]], dtype=torch.float64))[0]
    theirs = [
        float(iou(s / 16, (s + n) / 16, start, end)) for s, n in zip(c.start.tolist(), c.length.tolist(), strict=True)
    ]
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=torch.float64))


def test_spans_hold_each_cell_at_its_start_and_length() -> None:
    c = cells(20)
    scores = torch.arange(2.0 * len(c)).view(2, -1)
    grid = c.as_spans(scores, 20)
    assert grid.shape == (2, 20, 20)
    assert torch.equal(grid[:, c.start, c.length - 1], scores)
    assert int(torch.isfinite(grid).sum()) == 2 * len(c)
