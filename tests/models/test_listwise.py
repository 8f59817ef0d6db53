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
from momentseek.models.listwise import LIST_LOSSES, ListedScores, ListSettings, SpanScores, lambda_rank
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


@pytest.fixture
def spans() -> SpanScores:
    """Two queries, three videos of 5, 3 and 1 clips, spans of 1 to 3; query 0 has two moments in one video."""
    mask = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
    grid = torch.randn(2, 3, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pairs = pairs_of((0, 0, 0, 1, 0.9), (0, 0, 4, 4, 0.5), (0, 2, 0, 0, 0.7), (1, 1, 0, 2, 0.8))
    return SpanScores(grid.requires_grad_(), mask, pairs, 1, 3)


def each_span(spans: SpanScores, video: int) -> list[tuple[int, int]]:
    clips = int(spans.mask[video].sum())
    return [(s, w) for s in range(5) for w in range(3) if s + w < clips]


def iou(a: tuple[int, int], b: tuple[int, int]) -> float:
    common = max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)
    return common / (a[1] - a[0] + 1 + b[1] - b[0] + 1 - common)


def test_separates_listed_moments_from_unlisted_spans(spans: SpanScores) -> None:
    found, pairs, grid = spans.listed_scores(), spans.pairs, spans.grid
    moments = [tuple(int(x[i]) for x in (pairs.query, pairs.video, pairs.start, pairs.end)) for i in range(4)]
    assert found.listed.tolist() == [grid[q, v, s, e - s].item() for q, v, s, e in moments]
    for q in range(2):
        total = 0.0
        for v in range(3):
            own = [(s, e) for mq, mv, s, e in moments if (mq, mv) == (q, v)]
            for s, w in each_span(spans, v):
                if all(iou((s, s + w), moment) < 0.3 for moment in own):
                    total += math.exp(grid[q, v, s, w].item())
        assert found.unlisted[q].item() == pytest.approx(math.log(total))


def test_divergence_is_that_of_overlaps_and_scores(spans: SpanScores) -> None:
    found = spans.span_divergence()
    for i, value in enumerate(found.tolist()):
        q, v = int(spans.pairs.query[i]), int(spans.pairs.video[i])
        moment = (int(spans.pairs.start[i]), int(spans.pairs.end[i]))
        cells = each_span(spans, v)
        goal = [math.exp(iou((s, s + w), moment) / 0.1) for s, w in cells]
        own = [math.exp(spans.grid[q, v, s, w].item()) for s, w in cells]
        goal, own = [g / sum(goal) for g in goal], [o / sum(own) for o in own]
        assert value == pytest.approx(sum(g * math.log(g / o) for g, o in zip(goal, own, strict=True)), abs=1e-6)


@pytest.mark.parametrize("loss", [lambda s: s.listed_scores().unlisted.sum(), lambda s: s.span_divergence().sum()])
def test_no_gradient_is_nan_and_padding_has_none(spans: SpanScores, loss: Callable[[SpanScores], Tensor]) -> None:
    loss(spans).backward()
    assert spans.grid.grad is not None
    assert spans.grid.grad.isfinite().all()
    assert not spans.grid.grad[:, 1, 3:].any()
    assert not spans.grid.grad[:, 2, 1:].any()


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
