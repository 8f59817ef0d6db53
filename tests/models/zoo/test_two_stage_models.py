"""What MEE, MCN, CAL, ExCL, CONQUER and the endpoint-only model must do, whatever they are inside."""

from __future__ import annotations

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build

SMALL = {"hidden": 12, "max_words": 8, "max_clips": 12, "longest": 6, "endpoints": False, "dropout": 0.0}
CONQUER = {"heads": 2, "feedforward": 20, "clusters": 3, "head": 6, "negatives": 2, "span_weight": 1.0}
MODELS = {
    "mee": ("mee", {}),
    "mee-mean": ("mee", {"pooling": "mean", "modalities": "subtitle"}),
    "mee-netvlad": ("mee", {"pooling": "netvlad", "clip_clusters": 3}),
    "mcn": ("mcn", {"intra_overlap": 0.9}),
    "mcn-no-endpoints": ("mcn", {"intra_overlap": 0.9, "moment_endpoints": False, "shortest": 2}),
    "cal": ("cal", {"intra_overlap": 0.9}),
    "cal-video": ("cal", {"intra_overlap": 0.9, "modalities": "video", "shortest": 2}),
    "excl": ("excl", {}),
    "excl-mlp": ("excl", {"predictor": "mlp"}),
    "excl-conditioned": ("excl", {"predictor": "conditioned-lstm"}),
    "tef-only": ("tef-only", {}),
    "conquer": ("conquer", CONQUER),
    "conquer-exclusive": ("conquer", CONQUER | {"score": "exclusive"}),
    "conquer-subtitle": ("conquer", CONQUER | {"modalities": "subtitle", "negatives": 0}),
}
LEARNERS = {
    "mcn": (60, 2e-2),
    "cal": (200, 1e-2),
    "excl": (30, 2e-2),
    "conquer": (30, 2e-2),
}
"""Steps and the learning rate with which a model learns a handful of moments by heart."""


def model(name: str) -> CorpusModel:
    torch.manual_seed(0)
    kind, settings = MODELS[name]
    return build(kind, {**SMALL, **settings}, Dims(query=5, video=9, subtitle=7)).eval()


def batch(seed: int = 0) -> Batch:
    g = torch.Generator().manual_seed(seed)
    words = torch.arange(6) < torch.tensor([[6], [3], [1], [4], [5]])
    clips = torch.arange(12) < torch.tensor([[12], [7], [6], [10]])
    video, subtitle = (torch.randn(4, 12, d, generator=g) * clips[..., None] for d in (9, 7))
    subtitle[1] = 0.0  # a silent film
    query, shown = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([0, 1, 2, 3, 0, 1])
    start, end = torch.tensor([0, 1, 2, 3, 9, 4]), torch.tensor([3, 2, 4, 8, 11, 6])
    positive = torch.zeros(5, 4, dtype=torch.bool)
    positive[query, shown] = True
    weight = torch.tensor([1.0, 0.9, 0.8, 0.9, 1.0, 0.7])
    pairs = BatchPairs(query, shown, start, end, weight, positive)
    return Batch(
        Words(torch.randn(5, 6, 5, generator=g) * words[..., None], words), Clips(video, subtitle, clips), pairs
    )


def wider(x: torch.Tensor, by: int, value: float) -> torch.Tensor:
    """Padding of a kind no mask should let through."""
    return torch.cat([x, torch.full((len(x), by, *x.shape[2:]), value, dtype=x.dtype)], 1)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_padding_changes_no_score(name: str) -> None:
    m, b = model(name), batch()
    words, clips = b.words, b.clips
    clips = Clips(clips.video[:3, :10], clips.subtitle[:3, :10], clips.mask[:3, :10])
    padded = (
        Words(wider(words.features, 2, 7.0), wider(words.mask, 2, 0)),
        Clips(wider(clips.video, 2, 7.0), wider(clips.subtitle, 2, -7.0), wider(clips.mask, 2, 0)),
    )
    pick = torch.tensor([0, 1, 2])
    q, v, far_q, far_v = (
        m.encode_words(words),
        m.encode_clips(clips),
        m.encode_words(padded[0]),
        m.encode_clips(padded[1]),
    )
    torch.testing.assert_close(m.match(far_q, far_v), m.match(q, v))
    grid, far = m.spans(take_rows(q, pick), take_rows(v, pick)), m.spans(take_rows(far_q, pick), take_rows(far_v, pick))
    torch.testing.assert_close(far[:, :10], grid, atol=1e-5, rtol=1e-5)
    assert (far[:, 10:] == -torch.inf).all()


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_one_by_one_is_as_all_together(name: str) -> None:
    m, b = model(name), batch()
    q, v = m.encode_words(b.words), m.encode_clips(b.clips)
    together, matched = m.spans(take_rows(q, b.pairs.query), take_rows(v, b.pairs.video)), m.match(q, v)
    for row, (i, j) in enumerate(zip(b.pairs.query.tolist(), b.pairs.video.tolist(), strict=True)):
        words, clips = int(b.words.mask[i].sum()), int(b.clips.mask[j].sum())
        one = m.encode_words(Words(b.words.features[i : i + 1, :words], b.words.mask[i : i + 1, :words]))
        alone = Clips(*(x[j : j + 1, :clips] for x in (b.clips.video, b.clips.subtitle, b.clips.mask)))
        film = m.encode_clips(alone)
        torch.testing.assert_close(m.spans(one, film)[0], together[row, :clips], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(m.match(one, film)[0, 0], matched[i, j])


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_only_spans_within_the_video_have_scores(name: str) -> None:
    m, b = model(name), batch()
    every = torch.arange(4)
    grid = m.spans(take_rows(m.encode_words(b.words), every), take_rows(m.encode_clips(b.clips), every))
    counts, shortest = b.clips.mask.sum(1), m.config.shortest
    assert grid.shape == (4, 12, 6 - shortest + 1)
    for i, s, w in torch.cartesian_prod(every, torch.arange(12), torch.arange(grid.shape[2])).tolist():
        assert (grid[i, s, w] > -torch.inf) == (s + shortest + w <= counts[i])


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_every_parameter(name: str) -> None:
    m = model(name).train()
    total = sum(sum(m.loss(batch(), 0, torch.Generator().manual_seed(s)).values()) for s in range(3))
    total.backward()  # type: ignore[union-attr]
    assert [n for n, p in m.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("name", MODELS)
def test_the_generator_alone_decides_what_is_drawn(name: str) -> None:
    m, b = model(name), batch()
    same = [sum(m.loss(b, 0, torch.Generator().manual_seed(4)).values()) for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.parametrize("name", MODELS)
def test_pairs_of_weight_zero_cost_nothing(name: str) -> None:
    m, b = model(name), batch()
    unsure = BatchPairs(
        *(getattr(b.pairs, n) for n in ("query", "video", "start", "end")), torch.zeros(6), b.pairs.positive
    )
    assert sum(m.loss(Batch(b.words, b.clips, unsure), 0, torch.Generator()).values()) == 0


def learnt(name: str, steps: int, rate: float) -> tuple[CorpusModel, float, float]:
    m, b = model(name).train(), batch()
    optimiser = torch.optim.Adam(m.parameters(), lr=rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
    losses = []
    for step in range(steps):
        optimiser.zero_grad()
        loss = sum(m.loss(b, 0, torch.Generator().manual_seed(step)).values())
        loss.backward()  # type: ignore[union-attr]
        optimiser.step()
        schedule.step()
        losses.append(float(loss.detach()))  # type: ignore[union-attr]
    return m.eval(), sum(losses[:10]), sum(losses[-10:])


@pytest.mark.parametrize("name", LEARNERS)
def test_it_learns_a_handful_of_moments_by_heart(name: str) -> None:
    m, first, last = learnt(name, *LEARNERS[name])
    assert last < first / 2
    b = batch()
    with torch.no_grad():
        q, v = take_rows(m.encode_words(b.words), b.pairs.query), take_rows(m.encode_clips(b.clips), b.pairs.video)
        grid = m.spans(q, v)
    best, columns = grid.flatten(1).argmax(1), grid.shape[2]
    start, end = best // columns, best // columns + best % columns + m.config.shortest - 1
    common = (torch.minimum(end, b.pairs.end) - torch.maximum(start, b.pairs.start) + 1).clamp(min=0)
    heard = b.clips.subtitle[b.pairs.video].abs().sum((1, 2)) > 0
    found = common / (end - start + b.pairs.end - b.pairs.start + 2 - common) >= 0.5
    assert found[heard].all()


@pytest.mark.parametrize("name", ["mee", "mee-netvlad", "tef-only"])
def test_its_loss_falls(name: str) -> None:
    _, first, last = learnt(name, 40, 1e-2)
    assert last < first / 2


def test_an_unknown_modality_is_named() -> None:
    for kind in ("mee", "mcn", "cal", "excl", "conquer"):
        with pytest.raises(MomentseekError, match="'video\\+sound'"):
            build(kind, {"modalities": "video+sound"}, Dims(5, 9, 7))
        with pytest.raises(MomentseekError, match="no subtitle features"):
            build(kind, {}, Dims(5, 9, None))
