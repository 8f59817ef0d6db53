"""What every model of the map family must do, whatever it is inside."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import momentseek.models.zoo.bet
import momentseek.models.zoo.cet
import momentseek.models.zoo.crocs
import momentseek.models.zoo.mdd
import momentseek.models.zoo.mmn
import momentseek.models.zoo.tan2d  # noqa: F401
from momentseek.models.batch import Batch, BatchPairs, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build

SMALL = {"hidden": 12, "max_clips": 8, "longest": 8}
MAP = {"map_layers": 2, "kernel": 3, "stride": 1}
EDGES = {"heads": 2, "layers": 2, "power": 2.0, "dropout": 0.0}
FIELDS = ("features", "mask", "roles", "phrase")
MODELS = {
    "tan2d": ("tan2d", {**MAP, "text_layers": 2}),
    "tan2d-convolution": ("tan2d", {**MAP, "moments": "convolution", "padding": "first"}),
    "mdd": ("mdd", {**MAP, "text_layers": 1, "actions": 4, "unobserved": 5}),
    "mdd-all": ("mdd", {**MAP, "text_layers": 1, "actions": 4, "unobserved": 5, "confounders": "L*A*U"}),
    "mmn": ("mmn", {**MAP, "space": 10}),
    "mmn-lstm": ("mmn", {**MAP, "text": "lstm", "norm": False}),
    "crocs": ("crocs", {**MAP, "space": 10}),
    "bet": ("bet", EDGES),
    "cet": ("cet", EDGES),
}


def model(name: str) -> CorpusModel:
    torch.manual_seed(0)
    kind, settings = MODELS[name]
    return build(kind, {**SMALL, **settings}, Dims(query=6, video=9, subtitle=None)).eval()


def batch(seed: int = 0) -> Batch:
    g = torch.Generator().manual_seed(seed)
    features = torch.randn(4, 5, 6, generator=g)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1], [4]])
    features = features * mask[..., None]
    clips = Clips(torch.randn(3, 8, 9, generator=g), None, torch.ones(3, 8, dtype=torch.bool))
    query, video = torch.arange(4), torch.tensor([0, 1, 2, 0])
    times = torch.tensor([[0.0, 0.3], [0.5, 1.0], [0.2, 0.4], [0.6, 0.9]])
    first, last = (times[:, 0] * 8).floor().long(), (times[:, 1] * 8).ceil().long() - 1
    positive = torch.zeros(4, 3, dtype=torch.bool)
    positive[query, video] = True
    roles = torch.tensor([[0, 2, 1, 0, 2], [2, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 2, 1, 2, 0]])
    phrase = torch.tensor([[-1, 0, 0, -1, 0], [0, 0, -1, -1, -1], [-1] * 5, [0, 0, 1, 1, -1]])
    return Batch(
        Words(features, mask, roles, phrase),
        clips,
        BatchPairs(query, video, first, last, torch.ones(4), positive, times),
    )


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_padding_words_changes_no_score(name: str) -> None:
    m, b = model(name), batch()
    wide = torch.cat([b.words.features, torch.full((4, 3, 6), 7.0)], 1)
    padded = Words(
        wide,
        torch.cat([b.words.mask, torch.zeros(4, 3, dtype=torch.bool)], 1),
        torch.cat([b.words.roles, torch.zeros(4, 3, dtype=torch.long)], 1),
        torch.cat([b.words.phrase, torch.full((4, 3), -1)], 1),
    )
    videos = m.encode_clips(b.clips)
    torch.testing.assert_close(m.match(m.encode_words(padded), videos), m.match(m.encode_words(b.words), videos))


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_one_by_one_is_as_all_together(name: str) -> None:
    m, b = model(name), batch()
    queries, videos = m.encode_words(b.words), m.encode_clips(b.clips)
    paired = m.spans(take_rows(queries, b.pairs.query), take_rows(videos, b.pairs.video))
    assert paired.shape == (4, 8, 8)
    for i, v in enumerate(b.pairs.video.tolist()):
        alone = Clips(b.clips.video[v : v + 1], None, b.clips.mask[v : v + 1])
        single = m.encode_words(Words(*(getattr(b.words, f)[i : i + 1] for f in FIELDS)))
        torch.testing.assert_close(m.spans(single, m.encode_clips(alone))[0], paired[i])
        assert m.match(single, m.encode_clips(alone)).item() == pytest.approx(paired[i].max().item(), rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_every_parameter(name: str) -> None:
    m = model(name).train()
    sum(m.loss(batch(), 0, torch.Generator().manual_seed(0)).values()).backward()
    assert [n for n, p in m.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.figures) if "-" in name else name for name in MODELS]
)
def test_it_learns_a_handful_of_pairs_by_heart(name: str) -> None:
    m, b = model(name).train(), batch()
    assert overlap(m, b) < 0.5
    optimiser = torch.optim.Adam(m.parameters(), lr=2e-2, fused=True)
    first = last = 0.0
    for step in range(300 if "mdd" in name else 150):
        optimiser.zero_grad()
        loss = sum(m.loss(b, 0, torch.Generator().manual_seed(step)).values())
        loss.backward()
        optimiser.step()
        last = loss.item()
        first = first or last
        if step % 10 == 9 and last < first / 2 and overlap(m, b) > 0.5:
            return
    pytest.fail(
        f"after {step + 1} steps the loss fell from {first:.3f} to {last:.3f}, and the worst IoU {overlap(m, b)}"
    )


@torch.no_grad()
def overlap(m: CorpusModel, b: Batch) -> float:
    """The IoU of the best span with the moment, of the pair for which it is worst."""
    m.eval()
    queries, videos = m.encode_words(b.words), m.encode_clips(b.clips)
    best = m.spans(take_rows(queries, b.pairs.query), take_rows(videos, b.pairs.video)).flatten(1).argmax(1)
    m.train()
    found = []
    for place, (start, end) in zip(best.tolist(), b.pairs.times.tolist(), strict=True):
        s, n = place // 8, place % 8 + 1
        shared = max(0.0, min((s + n) / 8, end) - max(s / 8, start))
        found.append(shared / (n / 8 + end - start - shared))
    return min(found)


def test_crocs_without_filter_is_mmn_and_with_it_spares_related_videos() -> None:
    b = batch()
    b.pairs.positive[0, 1] = True
    mmn, plain, crocs = (model(n) for n in ("mmn", "crocs", "crocs"))
    plain.config = replace(plain.config, filter=False)
    losses = [m.loss(b, 0, torch.Generator())["matching"].item() for m in (mmn, plain, crocs)]
    assert losses[0] == pytest.approx(losses[1])
    assert losses[2] < losses[0]


def test_hard_negatives_alone_count_in_the_second_stage() -> None:
    b, m = batch(), model("crocs")
    none = torch.zeros(4, 3, dtype=torch.bool)
    some = none.clone()
    some[0, 1] = True
    without, with_one = (
        m.loss(replace(b, pairs=replace(b.pairs, hard_videos=h, hard_queries=none)), 0, torch.Generator())
        for h in (none, some)
    )
    assert with_one["matching"] > without["matching"]
    cosine = m.encode_clips(b.clips)["overlap"][1] @ m.encode_words(b.words)["overlap"][0]
    expected = -torch.log(1 - torch.sigmoid(10 * cosine)).mean()
    torch.testing.assert_close(with_one["rejection"], expected)
