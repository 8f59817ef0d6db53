from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, pad

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.losses import ranking_hinge, related_masks
from momentseek.models.registry import build
from momentseek.models.zoo.xml import XML

SMALL = {"hidden": 8, "heads": 2, "max_clips": 20, "longest": 6}
VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "lstm": {"encoder": "lstm"},
    "cnn": {"encoder": "cnn"},
    "kernel-1": {"kernel": 1},
    "no-modular": {"modular": False},
    "video": {"modalities": "video"},
    "subtitle": {"modalities": "subtitle"},
    "public-code": {"cross_linear": False, "positive_mask": False, "weighted": "not-hinge"},
    "papers-curve": {"query_linear": False},
    "endpoints": {"endpoints": True},
    "unlike-lengths": {"shortest": 3, "longest": 5},
}
Make = Callable[..., Batch]


def made(dims: Dims, seed: int = 0, **settings: object) -> XML:
    torch.manual_seed(seed)
    model = build("xml", SMALL | settings, dims)
    assert isinstance(model, XML)
    for p in model.parameters():  # Away from the start's small weights, where all clips look alike.
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def batch_for(model: XML, make: Make, dims: Dims, *sizes: int, seed: int = 0) -> Batch:
    more = 2 * model.config.endpoints
    return make(*sizes, seed=seed, dims=Dims(dims.query, (dims.video or 0) + more, (dims.subtitle or 0) + more))


def video(clips: Clips, i: int) -> Clips:
    """One video of a batch, without padding."""
    n = int(clips.mask[i].sum())
    first, second = (None if x is None else x[i : i + 1, :n] for x in (clips.video, clips.subtitle))
    return Clips(first, second, clips.mask[i : i + 1, :n])


def query(words: Words, i: int) -> Words:
    """One query of a batch, without padding."""
    n = int(words.mask[i].sum())
    return Words(words.features[i : i + 1, :n], words.mask[i : i + 1, :n])


def layers_by_hand(model: XML, clips: Clips) -> dict[str, tuple[Tensor, Tensor]]:
    """First and last layer of one video without padding, wired as Figure 3 shows."""
    mask = clips.mask
    assert clips.video is not None
    assert clips.subtitle is not None
    first = {}
    for m, x in (("video", clips.video), ("subtitle", clips.subtitle)):
        first[m] = model.clip_first[m].layers[0](model.clip_positions(model.clip_projections[m](x)), mask)
    last = {}
    for m, other in (("video", "subtitle"), ("subtitle", "video")):
        x = model.cross[m](first[m], first[other], mask)
        for layer in model.clip_later[m].layers:
            x = layer(x, mask)
        last[m] = x
    return {m: (first[m][0], last[m][0]) for m in first}


@torch.no_grad()
def test_scores_are_the_papers_formulas(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, query_linear=False), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    match = model.match(queries, videos)
    for i in range(len(match)):
        one = query(batch.words, i)
        encoded = model.word_encoders(model.word_positions(model.word_projection(one.features)), one.mask)[-1][0]
        share = (encoded @ model.pooling.weight.weight.T).softmax(0)
        q = dict(zip(("video", "subtitle"), share.T @ encoded, strict=True))
        for j in range(match.shape[1]):
            layers = layers_by_hand(model, video(batch.clips, j))
            best = [max(cosine_similarity(h, q[m], dim=0).item() for h in layers[m][0]) for m in q]
            assert match[i, j].item() == pytest.approx(sum(best) / 2, abs=1e-5)
            curve = [sum(float(layers[m][1][t] @ q[m]) for m in q) / 2 for t in range(len(layers["video"][1]))]
            grid = model.spans(take_rows(queries, torch.tensor([i])), take_rows(videos, torch.tensor([j])))[0]
            logs = []
            for side in range(2):
                taps = model.boundaries_head.filters.weight[side, 0]
                raw = [
                    sum(float(taps[k]) * curve[t + k - 2] for k in range(5) if 0 <= t + k - 2 < len(curve))
                    for t in range(len(curve))
                ]
                top = max(raw)
                logs.append([r - top - math.log(sum(math.exp(x - top) for x in raw)) for r in raw])
            for s in range(grid.shape[0]):
                for w in range(grid.shape[1]):
                    expected = logs[0][s] + logs[1][s + w] if s + w < len(curve) else -math.inf
                    assert grid[s, w].item() == pytest.approx(expected, abs=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS)
def test_batched_is_one_by_one_and_padding_changes_nothing(variant: str, make_batch: Make, dims: Dims) -> None:
    model = made(dims, **VARIANTS[variant])
    batch = batch_for(model, make_batch, dims, 4, 3, 4)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    match = model.match(queries, videos)
    pair = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 0])
    spans = model.spans(take_rows(queries, pair[0]), take_rows(videos, pair[1]))
    assert spans.shape == (4, batch.clips.mask.shape[1], model.config.longest - model.config.shortest + 1)

    alone = (
        [model.encode_words(query(batch.words, i)) for i in range(4)],
        [model.encode_clips(video(batch.clips, j)) for j in range(3)],
    )
    for i in range(4):
        for j in range(3):
            torch.testing.assert_close(model.match(alone[0][i], alone[1][j]), match[i : i + 1, j : j + 1])
    for row, (i, j) in enumerate(zip(*(p.tolist() for p in pair), strict=True)):
        one = model.spans(alone[0][i], alone[1][j])[0]
        torch.testing.assert_close(spans[row, : len(one)], one, rtol=1e-4, atol=1e-4)
        assert spans[row, len(one) :].eq(-torch.inf).all()

    # Padding filled with rubbish, and more of it.
    def wider(x: Tensor | None, mask: Tensor) -> Tensor | None:
        return None if x is None else torch.where(pad(mask, (0, 3))[..., None], pad(x, (0, 0, 0, 3)), 9.0)

    text = wider(batch.words.features, batch.words.mask)
    assert text is not None
    mask = batch.clips.mask
    clips = Clips(wider(batch.clips.video, mask), wider(batch.clips.subtitle, mask), pad(mask, (0, 3)))
    other = model.encode_words(Words(text, pad(batch.words.mask, (0, 3)))), model.encode_clips(clips)
    torch.testing.assert_close(model.match(*other), match)
    again = model.spans(take_rows(other[0], pair[0]), take_rows(other[1], pair[1]))
    torch.testing.assert_close(again[:, :-3], spans, rtol=1e-4, atol=1e-4)
    assert again[:, -3:].eq(-torch.inf).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_reach_every_parameter(variant: str, make_batch: Make, dims: Dims) -> None:
    model = made(dims, margin=3.0, **VARIANTS[variant]).train()
    batch = batch_for(model, make_batch, dims, 6, 5, 12)
    terms = model.loss(batch, 0, torch.Generator().manual_seed(0))
    sum(terms.values()).backward()  # type: ignore[union-attr]
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert torch.isfinite(p.grad).all(), name
        assert p.grad.abs().max() > 0, name


def test_loss_terms_are_the_papers(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, hard_from=0, hard_pool=1), make_batch(pairs=9)
    pairs = batch.pairs
    terms = model.loss(batch, 0, torch.Generator())
    with torch.no_grad():
        queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
        match = model.match(queries, videos)
        start, end = model.boundaries(take_rows(queries, pairs.query), take_rows(videos, pairs.video))
    span = hinge_video = hinge_query = 0.0
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        sim, own = pairs.weight[i].item(), match[q, v].item()
        wrong_videos = [match[q, j].item() for j in range(match.shape[1]) if not pairs.positive[q, j]]
        wrong_queries = [match[z, v].item() for z in range(match.shape[0]) if not pairs.positive[z, v]]
        hinge_video += sim * max(0.0, 0.1 + max(wrong_videos) - own) / 9 if wrong_videos else 0.0
        hinge_query += sim * max(0.0, 0.1 + max(wrong_queries) - own) / 9 if wrong_queries else 0.0
        span -= 0.01 * sim * (start[i, pairs.start[i]] + end[i, pairs.end[i]]).item() / 9
    found = {name: term.item() for name, term in terms.items()}
    assert found == pytest.approx({"wrong_video": hinge_video, "wrong_query": hinge_query, "span": span}, rel=1e-5)


def test_weight_on_the_whole_loss_or_on_spans_only(make_batch: Make, dims: Dims) -> None:
    batch = make_batch()
    plain = replace(batch, pairs=replace(batch.pairs, weight=torch.ones(8)))
    halved = replace(batch, pairs=replace(batch.pairs, weight=torch.full((8,), 0.5)))

    def terms(weighted: str, given: Batch) -> dict[str, float]:
        model = made(dims, weighted=weighted)
        return {name: t.item() for name, t in model.loss(given, 0, torch.Generator().manual_seed(0)).items()}

    full = terms("all", plain)
    assert full["span"] > 0
    assert full["wrong_video"] > 0
    assert terms("all", halved) == pytest.approx({name: value / 2 for name, value in full.items()})
    assert terms("not-hinge", halved) == pytest.approx(full | {"span": full["span"] / 2})
    assert terms("none", halved) == pytest.approx(full)


def test_hard_negatives_come_by_schedule(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, hard_from=2, hard_pool=1, margin=3.0), make_batch()

    def draws(epoch: int) -> set[float]:
        seeds = (torch.Generator().manual_seed(s) for s in range(8))
        return {round(model.loss(batch, epoch, rng)["wrong_video"].item(), 6) for rng in seeds}

    assert len(draws(1)) > 1
    assert len(draws(2)) == 1
    with torch.no_grad():
        scores = model.match(model.encode_words(batch.words), model.encode_clips(batch.clips))
        video, _ = ranking_hinge(scores, batch.pairs, related_masks(batch.pairs), 3.0, 1, torch.Generator())
    assert draws(2) == {round((video * batch.pairs.weight).mean().item(), 6)}


def test_word_weights_and_curves_explain(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims), make_batch(4, 4, 4)
    for weight in model.attention(batch.words).values():
        torch.testing.assert_close(weight.sum(1), torch.ones(4))
        assert weight[~batch.words.mask].eq(0).all()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    start, _ = model.boundaries(queries, videos)
    responses = model.responses(queries, videos)[:, 0].masked_fill(~batch.clips.mask, -torch.inf)
    torch.testing.assert_close(responses.log_softmax(-1), start)
    with pytest.raises(MomentseekError, match="no modular queries"):
        made(dims, modular=False).attention(batch.words)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modalities": "audio"}, "modalities must be video, subtitle or video[+]subtitle, not 'audio'"),
        ({"weighted": "some"}, "weighted must be one of all, not-hinge, none, not 'some'"),
        ({"encoder": "gru"}, "no encoder 'gru'"),
    ],
    ids=["modality", "weighted", "encoder"],
)
def test_settings_are_checked(settings: dict[str, object], message: str, dims: Dims) -> None:
    with pytest.raises(MomentseekError, match=message):
        build("xml", settings, dims)


def test_missing_features_are_named(make_batch: Make, dims: Dims) -> None:
    with pytest.raises(MomentseekError, match="the data have no subtitle features"):
        build("xml", SMALL, Dims(6, 7, None))
    model, batch = made(dims), make_batch()
    with pytest.raises(MomentseekError, match="the batch has no subtitle features"):
        model.encode_clips(replace(batch.clips, subtitle=None))


@torch.no_grad()
def test_silent_subtitles_give_finite_scores(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims), make_batch()
    assert batch.clips.subtitle is not None
    silent = replace(batch.clips, subtitle=torch.zeros_like(batch.clips.subtitle))
    queries, videos = model.encode_words(batch.words), model.encode_clips(silent)
    assert torch.isfinite(model.match(queries, videos)).all()
    assert not model.spans(take_rows(queries, torch.tensor([0])), take_rows(videos, torch.tensor([0]))).isnan().any()


def test_as_official_is_the_public_codes_ways(dims: Dims) -> None:
    """One setting stands for all of them, and those that are given beside it count."""
    model = made(dims, **{"as": "official", "cross_linear": True})
    assert (model.config.masked, model.config.positive_mask, model.config.cross_linear) == (False, False, True)
    assert made(dims, **{"as": "paper"}).config == made(dims).config
    with pytest.raises(MomentseekError, match="as must be paper or official, not 'theirs'"):
        made(dims, **{"as": "theirs"})


@torch.no_grad()
def test_padding_reaches_the_filters_only_as_official(make_batch: Make, dims: Dims) -> None:
    batch = make_batch()
    clips, longest = batch.clips, batch.clips.mask.shape[1]
    wide = Clips(*(None if x is None else pad(x, (0, 0, 0, 2)) for x in (clips.video, clips.subtitle)),
                 pad(clips.mask, (0, 2)))  # fmt: skip
    changed = {}
    for masked in (True, False):
        model = made(dims, masked=masked, cross_linear=False)
        queries = take_rows(model.encode_words(batch.words), torch.arange(4))
        before, after = (model.responses(queries, model.encode_clips(x)) for x in (clips, wide))
        changed[masked] = (after[..., :longest] - before).abs()[clips.mask[:, None].expand_as(before)].max().item()
    assert changed[True] < 1e-4
    assert changed[False] > 1e-2


@torch.no_grad()
def test_chosen_columns_are_what_a_model_of_these_columns_alone_sees(make_batch: Make, dims: Dims) -> None:
    assert dims.video is not None
    for endpoints in (False, True):
        whole = made(dims, columns="1:4", endpoints=endpoints)
        part = made(replace(dims, video=3), endpoints=endpoints)
        part.load_state_dict(whole.state_dict())
        clips = batch_for(whole, make_batch, dims, 2, 3).clips
        assert clips.video is not None
        used = torch.cat([clips.video[..., 1:4], clips.video[..., dims.video :]], dim=-1)
        for name, value in part.encode_clips(replace(clips, video=used)).items():
            assert torch.equal(whole.encode_clips(clips)[name], value)


def test_columns_that_the_features_lack_are_refused(dims: Dims) -> None:
    for columns, sentence in (("0:4000", "columns is 0:4000, but the video features have"), ("4:2", "two numbers")):
        with pytest.raises(MomentseekError, match=sentence):
            made(dims, columns=columns)
