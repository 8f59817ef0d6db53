"""List losses against the same equations written as loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.listwise import (
    LIST_LOSSES,
    NEAR_OVERLAP,
    RANDOM_SPANS,
    SHIFTED_COPIES,
    ListedScores,
    ListSettings,
    SpanSample,
    lambda_rank,
    sample_spans,
    span_divergence,
)
from momentseek.models.registry import build

QUERY = torch.tensor([0, 0, 1, 1, 1])
SIMILARITY = torch.tensor([0.9, 0.6, 0.8, 0.8, 0.3])


@pytest.fixture
def scores() -> ListedScores:
    rng = torch.Generator().manual_seed(0)
    listed = torch.randn(5, generator=rng, dtype=torch.float64).requires_grad_()
    unlisted = torch.randn(3, generator=rng, dtype=torch.float64).requires_grad_()
    return ListedScores(listed, SIMILARITY.double(), QUERY, unlisted)


def by_hand(scores: ListedScores, kind: str, temperature: float) -> list[float]:
    values = []
    for q in range(len(scores.unlisted)):
        rows = [i for i in range(len(QUERY)) if QUERY[i] == q]
        z = {i: scores.listed[i].item() for i in rows}
        y = {i: scores.similarity[i].item() for i in rows}
        others = math.exp(scores.unlisted[q].item())
        everything = sum(map(math.exp, z.values())) + others
        shares = {i: math.exp(y[i] / temperature) for i in rows}
        t = {i: shares[i] / sum(shares.values()) for i in rows}
        ordered = -sum(t[i] * (z[i] - math.log(everything)) for i in rows)
        before = sum(y[i] * math.log(1 + others / math.exp(z[i])) for i in rows) / max(1, len(rows))
        if kind in ("listnet", "unlisted", "both"):
            values.append({"listnet": ordered, "unlisted": before, "both": ordered + before}[kind])
        elif kind == "bce":
            terms = [
                -(y[i] ** 4) * math.log(1 / (1 + math.exp(-z[i])))
                - (1 - y[i] ** 4) * math.log(1 / (1 + math.exp(z[i])))
                for i in rows
            ]
            values.append(sum(terms) / max(1, len(terms)) + math.log(1 + others))
        elif kind == "mil-nce":
            values.append(-math.log(sum(map(math.exp, z.values())) / everything) if rows else math.inf)
        else:
            items = [(z[i], t[i]) for i in rows] + [(scores.unlisted[q].item(), 0.0)]
            rank = [1 + sum(other > mine for other, _ in items) for mine, _ in items]
            total = 0.0
            for a, (za, ga) in enumerate(items):
                for b, (zb, gb) in enumerate(items):
                    if ga > gb:
                        change = abs(1 / math.log2(1 + rank[a]) - 1 / math.log2(1 + rank[b]))
                        total += (ga - gb) * change * math.log(1 + math.exp(zb - za))
            values.append(total)
    return values


@pytest.mark.parametrize("kind", LIST_LOSSES)
def test_every_list_loss_is_its_equation(scores: ListedScores, kind: str) -> None:
    found = LIST_LOSSES[kind](scores, 0.2).tolist()
    wanted = by_hand(scores, kind, 0.2)
    asked = [0, 1]  # the third query has no listed moment in the batch
    assert [found[q] for q in asked] == pytest.approx([wanted[q] for q in asked])


@pytest.mark.parametrize("kind", LIST_LOSSES)
def test_gradients_are_finite_and_point_up_for_the_best_listed(scores: ListedScores, kind: str) -> None:
    LIST_LOSSES[kind](scores, 0.1)[:2].sum().backward()
    assert scores.listed.grad is not None
    assert scores.listed.grad.isfinite().all()
    assert scores.listed.grad[2] < 0


def test_lambda_does_not_move_a_list_in_its_right_order_by_much() -> None:
    right = ListedScores(
        torch.tensor([20.0, 10.0]), torch.tensor([1.0, 0.5]), torch.tensor([0, 0]), torch.tensor([-9.0])
    )
    wrong = ListedScores(torch.tensor([10.0, 20.0]), right.similarity, right.query, right.unlisted)
    assert lambda_rank(right, 0.5).item() < 1e-4 < 0.5 < lambda_rank(wrong, 0.5).item()


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(MomentseekError, match="list_loss must be listnet"):
        ListSettings(list_loss="listnett").check()
    with pytest.raises(MomentseekError, match="temperature"):
        ListSettings(temperature=0.0).check()


def pairs_of(*rows: tuple[int, int, int, int, float]) -> BatchPairs:
    query, video, start, end = (torch.tensor([row[i] for row in rows]) for i in range(4))
    related = torch.zeros(2, 3, dtype=torch.bool)
    related[query, video] = True
    return BatchPairs(query, video, start, end, torch.tensor([row[4] for row in rows]), related)


MASK = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
PAIRS = pairs_of((0, 0, 0, 1, 0.9), (0, 0, 4, 4, 0.5), (0, 2, 0, 0, 0.7), (1, 1, 0, 2, 0.8), (1, 0, 0, 4, 0.6))
"""Two queries, three videos of 5, 3 and 1 clips; query 0 has two moments in one video, and one of query 1 is too long
for spans of 1 to 3."""


@pytest.fixture
def spans() -> SpanSample:
    return sample_spans(PAIRS, MASK, 1, 3, torch.Generator().manual_seed(0))


def iou(a: tuple[int, int], b: tuple[int, int]) -> float:
    common = max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)
    return common / (a[1] - a[0] + 1 + b[1] - b[0] + 1 - common)


def test_sampled_spans_are_in_their_videos_and_begin_with_the_listed_moments(spans: SpanSample) -> None:
    found = list(zip(spans.video.tolist(), spans.first.tolist(), spans.last.tolist(), strict=True))
    assert len(found) == 5 + SHIFTED_COPIES * 5 + RANDOM_SPANS * 3
    assert [found[i] for i in spans.place.tolist()] == [(0, 0, 1), (0, 4, 4), (2, 0, 0), (1, 0, 2), (0, 0, 2)]
    assert all(0 <= first <= last < min(int(MASK[v].sum()), first + 3) for v, first, last in found)
    assert len({(first, last) for v, first, last in found if v == 1}) >= 5  # of six
    again = sample_spans(PAIRS, MASK, 1, 3, torch.Generator().manual_seed(0))
    assert torch.equal(again.first, spans.first)
    assert sorted(spans.compared.tolist()) == [0, 1, 2, 3, 4]


def test_spans_near_a_listed_moment_of_the_query_are_not_unlisted(spans: SpanSample) -> None:
    scores = torch.randn(2, len(spans.video), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = spans.listed_scores(scores)
    columns = [x.tolist() for x in (spans.video, spans.first, spans.last)]
    moments = [(int(PAIRS.query[i]), *(int(x[spans.place[i]]) for x in columns)) for i in range(5)]
    assert found.listed.tolist() == [scores[q, spans.place[i]].item() for i, (q, *_) in enumerate(moments)]
    for q in range(2):
        own = [(v, (s, e)) for mq, v, s, e in moments if mq == q]
        total = sum(
            math.exp(scores[q, i].item())
            for i, (v, s, e) in enumerate(zip(*columns, strict=True))
            if all(v != w or iou((s, e), moment) < NEAR_OVERLAP for w, moment in own)
        )
        assert found.unlisted[q].item() == pytest.approx(math.log(total))


def test_sums_by_video_are_over_its_sampled_spans(spans: SpanSample) -> None:
    scores = torch.randn(2, len(spans.video), dtype=torch.float64)
    found = spans.video_sums(scores, 3)
    for i in (0, 1, len(spans.video) - 1):
        assert found[1, i].item() == pytest.approx(scores[1, spans.video == spans.video[i]].logsumexp(0).item())


def spans_of_videos() -> Tensor:
    """z of all spans of the videos of the first four pairs, minus infinity past the last clip."""
    grid = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    last = torch.arange(5)[:, None] + torch.arange(3)
    return grid.masked_fill(last >= MASK.sum(1)[PAIRS.video[:4], None, None], -torch.inf).requires_grad_()


def test_divergence_is_that_of_overlaps_and_scores() -> None:
    grid = spans_of_videos()
    found = span_divergence(grid, PAIRS.start[:4], PAIRS.end[:4], 1)
    for i, value in enumerate(found.tolist()):
        moment = (int(PAIRS.start[i]), int(PAIRS.end[i]))
        cells = [(s, w) for s in range(5) for w in range(3) if grid[i, s, w].isfinite()]
        goal = [math.exp(iou((s, s + w), moment) / 0.1) for s, w in cells]
        own = [math.exp(grid[i, s, w].item()) for s, w in cells]
        goal, own = [g / sum(goal) for g in goal], [o / sum(own) for o in own]
        assert value == pytest.approx(sum(g * math.log(g / o) for g, o in zip(goal, own, strict=True)), abs=1e-6)


def test_no_gradient_is_nan_and_padding_has_none(spans: SpanSample) -> None:
    grid = spans_of_videos()
    span_divergence(grid, PAIRS.start[:4], PAIRS.end[:4], 1).sum().backward()
    assert grid.grad is not None
    assert grid.grad.isfinite().all()
    assert not grid.grad[grid.isinf()].any()
    short = torch.full((1, 5, 2), -torch.inf, requires_grad=True)  # a video shorter than every span
    span_divergence(short + 0.0, torch.tensor([0]), torch.tensor([0]), 2).sum().backward()
    assert short.grad is not None
    assert not short.grad.any()
    scores = torch.zeros(2, len(spans.video), requires_grad=True)
    only = torch.zeros(2, len(spans.video), dtype=torch.bool)
    only[:, spans.place] = True
    spans.listed_scores(scores.masked_fill(~only, -torch.inf)).unlisted.exp().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
def test_other_models_can_learn_from_lists(name: str, make_batch: Callable[..., Batch], dims: Dims) -> None:
    torch.manual_seed(0)
    model = build(name, {"hidden": 8, "heads": 2, "longest": 4, "objective": "list"}, dims)
    batch = make_batch()
    terms = model.loss(batch, 0, torch.Generator())
    assert set(terms) == {"list", "span", "scan"}
    sum(terms.values()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    with torch.no_grad():
        model.eval()
        queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
        one = torch.tensor([0])
        raw = model.spans(take_rows(queries, one), take_rows(videos, one))
    assert model.curve_filters is None
    assert raw[raw.isfinite()].logsumexp(0).abs() > 1e-3  # no probabilities of their video
