from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import cosine_similarity, pad

from momentseek.models.batch import Batch, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.reloclnet import ReLoCLNet

SMALL = {"hidden": 8, "heads": 2, "max_clips": 20, "longest": 6}
Make = Callable[..., Batch]


def made(dims: Dims, **settings: object) -> ReLoCLNet:
    torch.manual_seed(0)
    model = build("reloclnet", SMALL | settings, dims)
    assert isinstance(model, ReLoCLNet)
    for p in model.parameters():  # Away from the start's small weights, where all clips look alike.
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def test_layers_are_two_for_queries_and_three_per_modality(dims: Dims) -> None:
    model = build("reloclnet", {}, dims)
    assert isinstance(model, ReLoCLNet)
    counts = [len(s.layers) for s in (model.word_encoders, model.clip_first["video"], model.clip_later["video"])]
    assert counts == [2, 1, 2]
    assert (model.config.hidden, model.config.heads, model.config.alpha, model.config.fit) == (384, 8, 30.0, "resample")


@torch.no_grad()
def test_videos_and_spans_are_scored_on_the_last_layer(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims), make_batch(3, 3, 3)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    stack, mask = model.clip_stack(batch.clips), batch.clips.mask
    pooled = model.pooling(model.word_states(batch.words), batch.words.mask)
    match, curve = model.match(queries, videos), model.curve(queries, videos)
    for i in range(3):
        for j in range(3):
            best = [
                max(cosine_similarity(pooled[i, k], h, dim=0).item() for h in stack[m][2][j][mask[j]])
                for k, m in enumerate(("video", "subtitle"))
            ]
            assert match[i, j].item() == pytest.approx(sum(best) / 2, abs=1e-5)
        for t in range(int(mask[i].sum())):
            dots = [
                float(stack[m][2][i, t] @ model.span_queries[m](pooled[i, k]))
                for k, m in enumerate(("video", "subtitle"))
            ]
            assert curve[i, t].item() == pytest.approx(sum(dots) / 2, rel=1e-4, abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("modalities", ["video+subtitle", "video", "subtitle"])
def test_padding_changes_nothing(modalities: str, make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, modalities=modalities), make_batch(3, 3, 3)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    match, spans = model.match(queries, videos), model.spans(queries, videos)
    assert batch.clips.video is not None
    assert batch.clips.subtitle is not None
    for i in range(3):
        n, k = int(batch.clips.mask[i].sum()), int(batch.words.mask[i].sum())
        mask = pad(torch.ones(1, n, dtype=torch.bool), (0, 5))
        clips = Clips(
            pad(batch.clips.video[i : i + 1, :n], (0, 0, 0, 5), value=3.0),
            pad(batch.clips.subtitle[i : i + 1, :n], (0, 0, 0, 5), value=3.0),
            mask,
        )
        one = model.encode_words(Words(batch.words.features[i : i + 1, :k], batch.words.mask[i : i + 1, :k]))
        encoded = model.encode_clips(clips)
        torch.testing.assert_close(model.match(one, encoded)[0, 0], match[i, i])
        torch.testing.assert_close(model.spans(one, encoded)[0, :n], spans[i, :n], rtol=1e-4, atol=1e-4)
        assert model.spans(one, encoded)[0, n:].eq(-torch.inf).all()


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "public-code"])
def test_contrastive_terms_are_the_papers(masked: bool, make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, positive_mask=masked), make_batch(pairs=9)
    pairs, mask = batch.pairs, batch.clips.mask
    terms = model.loss(batch, 0, torch.Generator().manual_seed(0))
    assert list(terms) == ["wrong_video", "wrong_query", "span", "video_contrast", "frame_contrast"]
    with torch.no_grad():
        stack = model.clip_stack(batch.clips)
        pooled = model.pooling(model.word_states(batch.words), batch.words.mask)

    def dots(q: int, v: int, k: int) -> list[float]:
        middle = stack[("video", "subtitle")[k]][1]
        return [float(middle[v, t] @ pooled[q, k]) for t in range(int(mask[v].sum()))]

    def score(q: int, v: int) -> float:
        return (max(dots(q, v, 0)) + max(dots(q, v, 1))) / 2

    video = frame = 0.0
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        positives = [j for j in range(len(mask)) if (pairs.positive[q, j] if masked else j == v)]
        wrong = [score(q, j) for j in range(len(mask)) if j not in positives]
        wrong += [score(z, v) for z in range(len(pooled)) if z != q and not (masked and pairs.positive[z, v])]
        top = sum(math.exp(score(q, j)) for j in positives)
        video -= pairs.weight[i].item() * math.log(top / (top + sum(map(math.exp, wrong)))) / 9
        start, end = int(pairs.start[i]), int(pairs.end[i])
        for k in range(2):
            curve = dots(q, v, k)
            within = [math.log(2) - math.log1p(math.exp(-x)) for x in curve[start : end + 1]]
            without = [math.log1p(math.exp(x)) - math.log(2) for x in curve[:start] + curve[end + 1 :]]
            cost = sum(without) / len(without) if without else 0.0
            frame += pairs.weight[i].item() * (cost - sum(within) / len(within)) / 2 / 9
    assert terms["video_contrast"].item() == pytest.approx(0.03 * video, rel=1e-4)
    assert terms["frame_contrast"].item() == pytest.approx(0.03 * frame, rel=1e-4)


@pytest.mark.parametrize("modalities", ["video+subtitle", "video", "subtitle"])
def test_gradients_reach_every_parameter(modalities: str, make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, modalities=modalities, margin=3.0).train(), make_batch(6, 5, 12)
    sum(model.loss(batch, 0, torch.Generator().manual_seed(0)).values()).backward()  # type: ignore[union-attr]
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert torch.isfinite(p.grad).all(), name
        assert p.grad.abs().max() > 0, name


@torch.no_grad()
def test_clips_are_kept_once(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims), make_batch()
    kept = model.encode_clips(batch.clips)
    videos, clips = batch.clips.mask.shape
    assert {name: tuple(t.shape) for name, t in kept.items()} == {
        "mask": (videos, clips),
        "video": (videos, clips, 8),
        "video_length": (videos, clips),
        "subtitle": (videos, clips, 8),
        "subtitle_length": (videos, clips),
    }
    again = take_rows(kept, torch.tensor([1]))
    assert again["video"].shape == (1, clips, 8)
