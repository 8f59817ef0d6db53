"""Matching, overlaps and saliency targets, next to loops and to all assignments there are."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.models.batch import BatchPairs
from momentseek.models.layers.detr import DropPath, MultiHead, sine_positions, sine_waves
from momentseek.models.layers.set_prediction import (
    best_matching,
    generalised_iou,
    match_cost,
    saliency_margin,
    saliency_targets,
    set_losses,
    start_end,
    window_samples,
)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_no_assignment_costs_less(rows: int, columns: int, seed: int) -> None:
    cost = random(max(rows, columns), columns, seed=seed)
    found, of = best_matching(cost)
    least = min(sum(float(cost[r, c]) for c, r in enumerate(p)) for p in permutations(range(len(cost)), columns))
    assert float(cost[found, of].sum()) == pytest.approx(least, abs=1e-5)
    assert found.tolist() == sorted(found.tolist())


def iou_by_loops(one: list[float], two: list[float]) -> float:
    common = max(0.0, min(one[1], two[1]) - max(one[0], two[0]))
    union = one[1] - one[0] + two[1] - two[0] - common
    hull = max(one[1], two[1]) - min(one[0], two[0])
    return common / union - (hull - union) / hull


def test_cost_and_losses_by_loops() -> None:
    logits, spans = random(2, 3, 2), 0.2 + 0.3 * random(2, 3, 2, seed=1)
    wanted = [torch.tensor([[0.3, 0.2]]), torch.tensor([[0.5, 0.4], [0.8, 0.1]])]
    found = []
    for i in range(2):
        cost = match_cost(logits[i], spans[i], wanted[i], (10.0, 1.0, 4.0))
        for q in range(3):
            for w in range(len(wanted[i])):
                near = iou_by_loops(start_end(spans[i, q]).tolist(), start_end(wanted[i][w]).tolist())
                far = sum(abs(a - b) for a, b in zip(spans[i, q].tolist(), wanted[i][w].tolist(), strict=True))
                p = float(logits[i, q].softmax(0)[0])
                assert float(cost[q, w]) == pytest.approx(10 * far - near - 4 * p, abs=1e-5)
        found.append(best_matching(cost))
    terms = set_losses(logits, spans, wanted, found, background=0.1)
    distance, ious, label = [], [], 0.0
    for i, (rows, columns) in enumerate(found):
        for r, c in zip(rows.tolist(), columns.tolist(), strict=True):
            distance += [abs(a - b) for a, b in zip(spans[i, r].tolist(), wanted[i][c].tolist(), strict=True)]
            ious.append(1 - iou_by_loops(start_end(spans[i, r]).tolist(), start_end(wanted[i][c]).tolist()))
        for q in range(3):
            kind = 0 if q in rows.tolist() else 1
            label -= (1.0 if kind == 0 else 0.1) * float(logits[i, q].log_softmax(0)[kind])
    assert float(terms["span"]) == pytest.approx(sum(distance) / len(distance), abs=1e-6)
    assert float(terms["giou"]) == pytest.approx(sum(ious) / len(ious), abs=1e-6)
    assert float(terms["label"]) == pytest.approx(label / 6, abs=1e-6)


def test_clips_as_classes() -> None:
    logits, spans = random(1, 2, 2), random(1, 2, 8, seed=3)
    wanted = torch.tensor([[1, 3]])
    odds = spans.view(1, 2, 2, 4).softmax(-1)
    cost = match_cost(logits[0], spans[0], wanted, (1.0, 9.0, 0.0))
    assert torch.allclose(cost[:, 0], -odds[0, :, 0, 1] - odds[0, :, 1, 3])
    terms = set_losses(logits, spans, [wanted], [(torch.tensor([1]), torch.tensor([0]))], 0.1)
    assert float(terms["span"]) == pytest.approx(float(-(odds[0, 1, 0, 1].log() + odds[0, 1, 1, 3].log()) / 2))
    assert float(terms["giou"]) == 0


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_generalised_iou_is_at_most_one_and_of_both_alike(x: list[float]) -> None:
    one, two = (torch.tensor([min(p), max(p) + 0.01]) for p in (x[:2], x[2:]))
    value = float(generalised_iou(one, two))
    assert -1 <= value <= 1 + 1e-6
    assert value == pytest.approx(float(generalised_iou(two, one)), abs=1e-6)
    assert float(generalised_iou(one, one)) == pytest.approx(1, abs=1e-5)


def pairs(ratings: torch.Tensor | None = None) -> BatchPairs:
    """Query 0 has windows of clips 1–2 and 4 in video 1, query 1 all clips of video 0."""
    query, video = torch.tensor([0, 1, 0]), torch.tensor([1, 0, 1])
    start, end = torch.tensor([1, 0, 4]), torch.tensor([2, 5, 4])
    times = torch.stack([start, end + 1], 1) / 6
    return BatchPairs(query, video, start, end, torch.ones(3), torch.ones(2, 2) > 0, times, None, None, ratings)


def test_samples_have_all_windows_of_a_query_in_a_video() -> None:
    rng = torch.Generator().manual_seed(0)
    found = window_samples(pairs(), 5, rng)
    assert found.query.tolist() == [0, 1]
    assert found.video.tolist() == [1, 0]
    assert [c.tolist() for c in found.clips] == [[[1, 2], [4, 4]], [[0, 5]]]
    kept = {tuple(window_samples(pairs(), 1, rng).clips[0][0].tolist()) for _ in range(20)}
    assert kept == {(1, 2), (4, 4)}


def test_the_best_rated_clip_is_compared_with_the_worst() -> None:
    ratings = torch.zeros(2, 6, 3)
    ratings[0, 1], ratings[0, 2], ratings[0, 4] = torch.tensor([[4.0, 3, 4], [1, 0, 1], [2, 2, 2]])
    ratings[1] = torch.arange(6.0)[:, None]
    mask = torch.ones(2, 6) > 0
    for seed in range(10):
        given = pairs(ratings)
        samples = window_samples(given, 5, torch.Generator())
        found = saliency_targets(given, samples, mask, torch.Generator().manual_seed(seed))
        assert (found.above[0, 0], found.below[0, 0]) == (1, 2)
        assert found.above[0, 1].item() in (1, 2, 4)
        assert found.below[0, 1].item() in (0, 3, 5)
        assert found.above[1].tolist() == [5, 5]  # nothing lies outside
        assert found.below[1].tolist() == [0, 0]
        assert found.ratings[0].tolist() == [0, 11, 2, 0, 6, 0]


def test_of_equally_rated_clips_the_public_code_takes_the_last() -> None:
    given = pairs(torch.ones(2, 6, 3))
    samples, mask = window_samples(given, 5, torch.Generator()), torch.ones(2, 6) > 0
    for public, best in ((False, 1), (True, 4)):
        found = saliency_targets(given, samples, mask, torch.Generator().manual_seed(0), public=public)
        assert (found.above[0, 0], found.below[0, 0]) == (best, 1)


def test_clips_of_a_window_that_is_left_out_are_no_negatives() -> None:
    given = pairs(torch.ones(2, 6, 3))
    for seed in range(20):
        rng = torch.Generator().manual_seed(seed)
        found = saliency_targets(given, window_samples(given, 1, rng), torch.ones(2, 6) > 0, rng)
        assert found.below[0, 1].item() in (0, 3, 5)


def test_without_ratings_clips_inside_stand_above_those_outside() -> None:
    given = pairs()
    samples = window_samples(given, 5, torch.Generator())
    found = saliency_targets(given, samples, torch.ones(2, 6) > 0, torch.Generator().manual_seed(1))
    assert found.above.shape == (2, 2)
    assert set(found.above[0].tolist()) <= {1, 2, 4}
    assert set(found.below[0].tolist()) <= {0, 3, 5}
    assert found.above[1].tolist() == found.below[1].tolist()
    assert found.ratings[0].tolist() == [0, 1, 1, 0, 1, 0]
    scores = torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0, 0.0], [0.0] * 6])
    assert float(saliency_margin(scores, found, 0.2)) == pytest.approx(2 * 0.2 / 2)


def test_positions_are_those_of_the_video_and_not_of_the_batch() -> None:
    mask = torch.tensor([[True, True, True, False, False]])
    placed = sine_positions(mask, torch.zeros(1, 5, 8))
    alone = sine_positions(mask[:, :3], torch.zeros(1, 3, 8))
    assert torch.allclose(placed[:, :3], alone)
    for j in range(8):
        angle = torch.tensor(2.0) * 2 * torch.pi / 3 / 10000 ** (2 * (j // 2) / 8)
        assert float(alone[0, 1, j]) == pytest.approx(float(angle.sin() if j % 2 == 0 else angle.cos()), abs=1e-5)
    assert sine_waves(torch.zeros(2, 3), 4).shape == (2, 3, 4)


def test_attention_is_torchs() -> None:
    torch.manual_seed(0)
    ours, theirs = MultiHead(8, 2, 0.0), torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.into.weight)
        theirs.in_proj_bias.copy_(ours.into.bias)
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    q, k, v = (torch.randn(2, n, 8) for n in (3, 5, 5))
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    wanted = theirs(q, k, v, key_padding_mask=~mask)[0]
    assert torch.allclose(ours(q, k, v, mask), wanted, atol=1e-6)
    ours.dropout.p = 1e-9  # the way with dropout, which sdpa does not take
    assert torch.allclose(ours.train()(q, k, v, mask), wanted, atol=1e-5)


def test_a_path_is_left_out_for_whole_samples() -> None:
    torch.manual_seed(0)
    rows = DropPath(0.5).train()(torch.ones(64, 2, 3))
    assert set(rows.flatten(1).sum(1).tolist()) == {0.0, 12.0}
    assert torch.equal(DropPath(0.5).eval()(torch.ones(4, 2, 3)), torch.ones(4, 2, 3))
