"""SPR's segments, proposals, spans and losses, next to loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.spr import Spr, both_ways, keep_relevant, merge_segments, related_stretches

SMALL: dict[str, Any] = {
    "hidden": 16, "heads": 4, "layers": 2, "segment": 3, "context": 2, "window": 9, "proposals": 3, "per_video": 2,
    "refine_hidden": 16, "refine_heads": 2, "max_clips": 20, "longest": 9, "refine_dropout": 0.0,
}  # fmt: skip


def model_of(dims: Dims, **settings: Any) -> Spr:
    torch.manual_seed(0)
    model = build("spr", {**SMALL, **settings}, dims).eval()
    assert isinstance(model, Spr)
    return model


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(0, 99))
def test_neighbouring_segments_are_one_proposal(flags: list[bool], seed: int) -> None:
    scores = torch.randperm(len(flags), generator=torch.Generator().manual_seed(seed)).float()
    runs: list[list[int]] = []
    for place, chosen in enumerate(flags):
        if chosen and place and flags[place - 1]:
            runs[-1].append(place)
        elif chosen:
            runs.append([place])
    runs.sort(key=lambda run: -max(float(scores[i]) for i in run))
    first, last, there = merge_segments(scores[None], torch.tensor([flags]), 4)
    found = [(f, e) for f, e, t in zip(first[0].tolist(), last[0].tolist(), there[0].tolist(), strict=True) if t]
    assert found == [(run[0], run[-1]) for run in runs[:4]]


@torch.no_grad()
def test_a_segment_sees_its_own_clips_only(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, clips = model_of(dims), make_batch(videos=3).clips
    vectors = model.segments(clips)
    rows = model.clips(clips)
    for v in range(3):
        for s in range(vectors.shape[1]):
            own = [i for i in range(3 * s, 3 * s + 3) if i < clips.mask.shape[1] and clips.mask[v, i]]
            if not own:
                continue
            x = seen = rows[v : v + 1, own]
            for layer in model.encoder:
                x = layer(x, torch.ones(1, len(own), dtype=torch.bool))
            pooled = F.normalize(x + seen, dim=2).mean(1)
            assert torch.allclose(vectors[v, s], F.normalize(model.segment_out(pooled), dim=1)[0], atol=1e-5)


@torch.no_grad()
def test_moments_by_loops(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = model_of(dims, sharpness=5.0), make_batch(queries=3, videos=3, pairs=3)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    start, end, score = model.moments(queries, videos)
    for n in range(3):
        count = int(batch.clips.mask[n].sum())
        segments = [model.unit_scores(take_rows(queries, torch.tensor([n])), take_rows(videos, torch.tensor([n])))[0, s]
                    for s in range(-(-count // 3))]  # fmt: skip
        best = sorted(range(len(segments)), key=lambda s: -float(segments[s]))[:2]
        runs = [[s] for s in best]
        if len(best) == 2 and abs(best[0] - best[1]) == 1:
            runs = [sorted(best)]
        for p, run in enumerate(runs):
            first = max(0, 3 * run[0] - 2)
            after = min(count, 3 * run[-1] + 3 + 2, first + 9)
            part = Clips(batch.clips.modality("video")[n : n + 1, first:after],
                         batch.clips.modality("subtitle")[n : n + 1, first:after],
                         torch.ones(1, after - first, dtype=torch.bool))  # fmt: skip
            read = model.refiner.encode_clips(part)
            asked = {k.removeprefix("refined_"): x[n : n + 1] for k, x in queries.items() if k.startswith("refined_")}
            spans = model.refiner.spans(asked, read)[0]
            value, place = spans.flatten().max(0)
            s, w = divmod(int(place), spans.shape[1])
            near = float(model.refiner.match(asked, read))
            assert float(score[n, p]) == pytest.approx(5 * near + float(value), abs=1e-4)
            assert float(start[n, p]) == pytest.approx((first + s) / count, abs=1e-6)
            assert float(end[n, p]) == pytest.approx((first + s + w + 1) / count, abs=1e-6)
        assert (score[n, len(runs) :] == -torch.inf).all()


@torch.no_grad()
def test_only_segments_above_the_cutoff_become_proposals(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = model_of(dims), make_batch(queries=2, videos=2, pairs=2)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    scores = model.unit_scores(queries, videos)
    queries["cutoff"] = torch.tensor([float(scores[0].max()), 2.0])
    found = model.proposals(queries, videos)
    assert found.there.sum(1).tolist() == [1, 0]
    assert model.moments(queries, videos)[2][1].tolist() == [-torch.inf] * 3


def test_positives_are_moments_that_share_a_clip(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(queries=4, videos=2, pairs=8).pairs
    first, last = pairs.start, pairs.end
    found = related_stretches(pairs, 4, first, last)
    for q in range(4):
        for p in range(8):
            shared = any(
                int(pairs.query[o]) == q and pairs.video[o] == pairs.video[p]
                and pairs.start[o] <= last[p] and pairs.end[o] >= first[p] for o in range(8)
            )  # fmt: skip
            assert bool(found[q, p]) == shared
    assert found[pairs.query, torch.arange(8)].all()


def test_contrast_both_ways_by_loops() -> None:
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    related = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]) > 0
    e, r = scores.exp().numpy(), related.numpy()
    rows = [-np.log(e[i][r[i]].sum() / e[i].sum()) for i in range(3) if r[i].any()]
    columns = [-np.log(e[:, j][r[:, j]].sum() / e[:, j].sum()) for j in range(4) if r[:, j].any()]
    assert float(both_ways(scores, related)) == pytest.approx(np.mean(rows) + np.mean(columns), abs=1e-5)


def test_what_is_hardly_similar_is_no_positive(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch().pairs
    kept = keep_relevant(pairs, 0.5)
    assert len(kept.query) == int((pairs.weight >= 0.5).sum())
    assert float(kept.weight.min()) >= 0.5
    assert len(keep_relevant(pairs, 2.0).query) == len(pairs.query)


def test_the_moments_own_proposals(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = model_of(dims), make_batch()
    made = model.proposal_batch(batch)
    for p in range(8):
        video, count = int(batch.pairs.video[p]), int(batch.clips.mask[batch.pairs.video[p]].sum())
        s, e = int(batch.pairs.start[p]), int(batch.pairs.end[p])
        first = max(0, s // 3 * 3 - 2)
        after = min(count, e // 3 * 3 + 3 + 2, first + 9)
        assert int(made.clips.mask[p].sum()) == after - first
        wanted = batch.clips.modality("video")[video, first:after]
        assert torch.equal(made.clips.modality("video")[p, : after - first], wanted)
        assert (int(made.pairs.start[p]), int(made.pairs.end[p])) == (s - first, min(e, after - 1) - first)


def test_it_learns(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = model_of(dims).train(), make_batch(queries=6, videos=6, pairs=6)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    values = []
    for step in range(60):
        terms = model.loss(batch, 0, torch.Generator().manual_seed(step))
        loss = torch.stack(list(terms.values())).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        values.append(loss.item())
    assert np.mean(values[-10:]) < 0.5 * np.mean(values[:10])
    assert model.phase_at(0, 0).rate("scale") == 0.01


def test_a_window_must_hold_a_segment_and_its_context(dims: Dims) -> None:
    with pytest.raises(MomentseekError, match="window is 5 clips, and a segment with its context has 7"):
        model_of(dims, window=5)
