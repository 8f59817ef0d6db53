"""Slate against its equations written as loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import layer_norm

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.listwise import sample_spans
from momentseek.models.losses import ranking_hinge, related_masks
from momentseek.models.registry import build
from momentseek.models.zoo.slate import POOLINGS, Slate, windowed_mean

Make = Callable[..., Batch]
SMALL = {"hidden": 8, "heads": 2, "longest": 4, "context": 3}


def made(dims: Dims, **settings: object) -> Slate:
    torch.manual_seed(0)
    model = build("slate", SMALL | settings, dims)
    assert isinstance(model, Slate)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def one_video(clips: Clips, i: int) -> Clips:
    n = int(clips.mask[i].sum())
    first, second = (None if x is None else x[i : i + 1, :n] for x in (clips.video, clips.subtitle))
    return Clips(first, second, clips.mask[i : i + 1, :n])


@torch.no_grad()
def test_clips_are_the_equation_clip_by_clip(make_batch: Make, dims: Dims) -> None:
    model, clips = made(dims), one_video(make_batch().clips, 0)
    assert clips.video is not None
    assert clips.subtitle is not None
    both = torch.cat([clips.video, clips.subtitle], -1)[0]
    rows = []
    for t in range(len(both)):
        near = [u for u in range(len(both)) if abs(u - t) <= 3]
        h = sum(model.around(both[u]) for u in near) / len(near)
        for m, x in (("video", clips.video[0, t]), ("subtitle", clips.subtitle[0, t])):
            if x.any():
                norm = model.clip_norms[m]
                h = h + layer_norm(model.clip_inputs[m](x), (8,), norm.weight, norm.bias)
        rows.append(h)
    for block in model.blocks:
        mixed = []
        for t in range(len(rows)):
            column = block.conv.bias.clone()
            for k in range(7):
                if 0 <= t + k - 3 < len(rows):
                    column += block.conv.weight[:, 0, k] * rows[t + k - 3]
            mixed.append(rows[t] + block.back(block.wide(block.norm(column)).relu()))
        rows = mixed
    wanted = torch.stack([model.clip_output(h) / model.clip_output(h).norm() for h in rows])
    torch.testing.assert_close(model.encode_clips(clips)["clips"][0], wanted)


@torch.no_grad()
def test_padding_and_other_videos_change_nothing(make_batch: Make, dims: Dims) -> None:
    model, clips = made(dims), make_batch().clips
    together = model.encode_clips(clips)["clips"]
    for i in range(len(clips)):
        alone = model.encode_clips(one_video(clips, i))["clips"][0]
        torch.testing.assert_close(together[i, : len(alone)], alone)
        assert not together[i, len(alone) :].any()


@torch.no_grad()
def test_a_part_of_a_video_with_its_neighbourhood_gives_the_same_clips(dims: Dims) -> None:
    model = made(dims)
    video, spoken = torch.randn(1, 60, dims.video or 0), torch.randn(1, 60, dims.subtitle or 0)
    whole = model.encode_clips(Clips(video, spoken, torch.ones(1, 60, dtype=torch.bool)))["clips"]
    halo = 2 * 3 + 3  # two convolutions of seven clips, and the mean of three to either side
    part = slice(20 - halo, 40 + halo)
    mask = torch.ones(1, 20 + 2 * halo, dtype=torch.bool)
    found = model.encode_clips(Clips(video[:, part], spoken[:, part], mask))["clips"]
    torch.testing.assert_close(found[:, halo:-halo], whole[:, 20:40])


@torch.no_grad()
@pytest.mark.parametrize("shortest", [1, 2])
def test_spans_are_the_equation(make_batch: Make, dims: Dims, shortest: int) -> None:
    model, made_of = made(dims, shortest=shortest), make_batch()
    queries, videos = model.encode_words(made_of.words), model.encode_clips(made_of.clips)
    n = min(len(queries["clips"]), len(made_of.clips))
    asked, searched = (take_rows(x, torch.arange(n)) for x in (queries, videos))
    grid = model.spans(asked, searched)
    for i in range(n):
        x = searched["clips"][i, : int(searched["mask"][i].sum())]
        outside = torch.zeros(x.shape[1])
        for s in range(grid.shape[1]):
            for w in range(grid.shape[2]):
                e = s + shortest - 1 + w
                if e >= len(x):
                    assert grid[i, s, w] == -torch.inf
                    continue
                before, after = (x[s - 1] if s else outside), (x[e + 1] if e + 1 < len(x) else outside)
                z = asked["clips"][i] @ x[s : e + 1].mean(0) + asked["start"][i] @ (x[s] - before)
                z = z + asked["end"][i] @ (x[e] - after) + asked["lengths"][i, w]
                assert grid[i, s, w].item() == pytest.approx(z.item(), abs=1e-4)


@torch.no_grad()
def test_queries_are_pooled_by_attention_of_length_scale(make_batch: Make, dims: Dims) -> None:
    model, words = made(dims), make_batch().words
    found, weights = model.encode_words(words), model.attention(words)
    for i, name in enumerate(POOLINGS):
        assert weights[name].sum(1).tolist() == pytest.approx([1.0] * len(words.mask))
        assert not weights[name][~words.mask].any()
        torch.testing.assert_close(found[name].norm(dim=1), model.scale[i].abs().expand(len(words.mask)))
    alone = model.encode_words(
        Words(words.features[:1, : int(words.mask[0].sum())], words.mask[:1, : int(words.mask[0].sum())])
    )
    torch.testing.assert_close(alone["start"][0], found["start"][0])


@torch.no_grad()
def test_parts_can_be_left_out(make_batch: Make, dims: Dims) -> None:
    words = make_batch().words
    plain = made(dims, edges=False, lengths="none").encode_words(words)
    assert not plain["start"].any()
    assert not plain["lengths"].any()
    assert made(dims, context=0).around is None


def test_windowed_mean_is_that_of_the_clips_that_are_there() -> None:
    x, mask = torch.randn(2, 9, 3), torch.arange(9) < torch.tensor([9, 4])[:, None]
    found = windowed_mean(x, mask, 2)
    for i, n in enumerate((9, 4)):
        for t in range(n):
            torch.testing.assert_close(found[i, t], x[i, max(0, t - 2) : min(n, t + 3)].mean(0))


def test_the_loss_has_its_three_terms_and_moves_every_weight(make_batch: Make, dims: Dims) -> None:
    model, made_of = made(dims).train(), make_batch()
    terms = model.loss(made_of, 0, torch.Generator())
    assert set(terms) == {"list", "span", "scan"}
    sum(terms.values()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def loop_scores(model: Slate, batch: Batch) -> tuple[list[list[dict[tuple[int, int], float]]], list[list[float]]]:
    """z of every span, by query and video, and every video's best clip: the equations as loops."""
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    scores: list[list[dict[tuple[int, int], float]]] = []
    best: list[list[float]] = []
    for q in range(len(queries["clips"])):
        scores.append([])
        best.append([])
        for v in range(len(batch.clips)):
            x = videos["clips"][v, : int(videos["mask"][v].sum())]
            found = {}
            for s in range(len(x)):
                for e in range(s, min(len(x), s + 4)):
                    rise = x[s] - (x[s - 1] if s else 0 * x[s])
                    fall = x[e] - (x[e + 1] if e + 1 < len(x) else 0 * x[e])
                    z = queries["clips"][q] @ x[s : e + 1].mean(0) + queries["start"][q] @ rise
                    found[s, e] = float(z + queries["end"][q] @ fall + queries["lengths"][q, e - s])
            scores[q].append(found)
            best[q].append(max(float(queries["clips"][q] @ row) for row in x))
    return scores, best


def loop_iou(a: tuple[int, int], b: tuple[int, int]) -> float:
    common = max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)
    return common / (a[1] - a[0] + 1 + b[1] - b[0] + 1 - common)


def loop_log_sum(values: list[float]) -> float:
    return math.log(sum(map(math.exp, values)))


@torch.no_grad()
@pytest.mark.parametrize("per_video", [False, True])
def test_the_loss_is_its_three_equations(make_batch: Make, dims: Dims, per_video: bool) -> None:
    model, batch = made(dims, per_video=per_video), make_batch(queries=4, videos=4, pairs=7)
    pairs = batch.pairs
    scores, best = loop_scores(model, batch)
    sample = sample_spans(pairs, batch.clips.mask, 1, 4, torch.Generator().manual_seed(5))
    drawn: list[list[tuple[int, int]]] = [[] for _ in range(4)]
    for v, s, e in zip(sample.video.tolist(), sample.first.tolist(), sample.last.tolist(), strict=True):
        drawn[v].append((s, e))
    plain = scores
    if per_video:
        scores = [
            [
                {w: z - loop_log_sum([own[d] for d in drawn[v]]) + best[q][v] for w, z in own.items()}
                for v, own in enumerate(row)
            ]
            for q, row in enumerate(scores)
        ]
    listed: dict[int, list[tuple[int, tuple[int, int], float]]] = {}
    columns = (pairs.query, pairs.video, pairs.start, pairs.end, pairs.weight)
    for q, v, s, e, y in zip(*(x.tolist() for x in columns), strict=True):
        listed.setdefault(q, []).append((v, (s, e), y))
    lists, scans, spans = [], [], []
    for q, own in listed.items():
        shares = [math.exp(y / 0.1) for _, _, y in own]
        # a moment of more than four clips is scored as its first four
        z = [scores[q][v][s, min(e, s + 3)] for v, (s, e), _ in own]
        others = [
            row[span]
            for v, row in enumerate(scores[q])
            for span in drawn[v]
            if all(loop_iou(span, (m[0], min(m[1], m[0] + 3))) < 0.7 for w, m, _ in own if w == v)
        ]
        total = loop_log_sum(z + others)
        ordered = -sum(t / sum(shares) * (value - total) for t, value in zip(shares, z, strict=True))
        rest = loop_log_sum(others)
        before = [y * math.log(1 + math.exp(rest - value)) for (_, _, y), value in zip(own, z, strict=True)]
        lists.append(ordered + sum(before) / len(before))
        wrong = [best[q][v] for v in range(4) if v not in {w for w, _, _ in own}]
        total = loop_log_sum([best[q][v] for v, _, _ in own] + wrong)
        ordered = -sum(t / sum(shares) * (best[q][v] - total) for t, (v, _, _) in zip(shares, own, strict=True))
        rest = loop_log_sum(wrong)
        before = [y * math.log(1 + math.exp(rest - best[q][v])) for v, _, y in own]
        scans.append(ordered + sum(before) / len(before))
        for v, moment, _ in own:
            row = plain[q][v]
            goal = {span: math.exp(loop_iou(span, moment) / 0.1) for span in row}
            total = loop_log_sum(list(row.values()))
            spans.append(
                sum(
                    g / sum(goal.values()) * (math.log(g / sum(goal.values())) - row[w] + total)
                    for w, g in goal.items()
                )
            )
    found = model.loss(batch, 0, torch.Generator().manual_seed(5))
    assert found["list"].item() == pytest.approx(sum(lists) / len(lists), rel=1e-4)
    assert found["span"].item() == pytest.approx(1.5 * sum(spans) / len(spans), rel=1e-4)
    assert found["scan"].item() == pytest.approx(0.2 * sum(scans) / len(scans), rel=1e-4)


@torch.no_grad()
def test_a_linear_matcher_has_one_map_per_side(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, encoder="linear"), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    words = batch.words.features[0, : int(batch.words.mask[0].sum())]
    q = model.poolings[0](model.word_input(words).mean(0))
    torch.testing.assert_close(queries["clips"][0], model.scale[0] * q / q.norm())
    assert batch.clips.video is not None
    assert batch.clips.subtitle is not None
    x = model.clip_inputs["video"](batch.clips.video[0, 0]) + model.clip_inputs["subtitle"](batch.clips.subtitle[0, 0])
    x = model.clip_output(x)
    torch.testing.assert_close(videos["clips"][0, 0], x / x.norm())


@torch.no_grad()
def test_lengths_may_be_the_same_for_all_queries(make_batch: Make, dims: Dims) -> None:
    lengths = made(dims, lengths="prior").encode_words(make_batch().words)["lengths"]
    assert lengths[0].any()
    torch.testing.assert_close(lengths, lengths[:1].expand_as(lengths))


def test_the_hinge_is_xmls_on_cosines(make_batch: Make, dims: Dims) -> None:
    model, batch = made(dims, objective="hinge", per_video=True, alpha=3.0), make_batch()
    found = model.loss(batch, 0, torch.Generator().manual_seed(3))
    cosine = model.match(model.encode_words(batch.words), model.encode_clips(batch.clips)) / model.scale[0].abs()
    rng = torch.Generator().manual_seed(3)
    sample_spans(batch.pairs, batch.clips.mask, 1, 4, rng)  # drawn before the wrong videos
    wrong = ranking_hinge(cosine, batch.pairs, related_masks(batch.pairs), 0.1, None, rng)
    torch.testing.assert_close(found["hinge"], ((wrong[0] + wrong[1]) * batch.pairs.weight).mean())
    with pytest.raises(MomentseekError, match="per_video"):
        build("slate", SMALL | {"objective": "hinge"}, dims)
