"""Models that predict times: cut to the video, ranked and suppressed as spans are, and never rounded to clips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.moment import iou
from momentseek.models.batch import Batch, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel, ModelConfig

ALPHA = 2.0


class Continuous(CorpusModel):
    """One moment around each clip; scores are whole numbers, times are eighths, so that every sum is exact."""

    def encode_words(self, words: Words) -> Encodings:
        return {"query": (words.features * words.mask[..., None]).sum(1)}

    def encode_clips(self, clips: Clips) -> Encodings:
        assert clips.video is not None
        return {"clip": clips.video * clips.mask[..., None], "mask": clips.mask}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        return queries["query"] @ videos["clip"].sum(1).T

    def moments(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor, Tensor]:
        clip, mask = videos["clip"], videos["mask"]
        place = torch.arange(mask.shape[1])
        start, end = place / 8 - 0.25 + clip[..., 0] / 16, place / 8 + 0.5 + clip[..., 1] / 4
        return start, end, torch.einsum("nd,nld->nl", queries["query"], clip).masked_fill(~mask, -torch.inf)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        raise NotImplementedError


def make(**settings: Any) -> Continuous:
    defaults = {"modalities": "video", "normalise": False, "max_clips": 6, "alpha": ALPHA, "videos": 4}
    return Continuous(ModelConfig(**(defaults | settings)), Dims(3, 3, None)).eval()


def by_loops(world: Any, k: int, nms: float | None, fit_rows: int = 6) -> list[tuple[Any, ...]]:
    """What should be found, from the definitions; videos longer than six clips are cut, so shares are of those."""
    found = []
    for query in world.truth.query_ids:
        asked = world.query.read(query).sum(0)
        scored = []
        for place, name in enumerate(world.corpus):
            clips = world.video.read(name)[:fit_rows]
            scored.append((-float(clips.sum(0) @ asked), place, name, clips))
        moments = []
        for rank, (negative, _, name, clips) in enumerate(sorted(scored, key=lambda row: row[:2])[:4]):
            covered = min(1.5 * len(clips), world.durations[name])
            for i, clip in enumerate(clips):
                start = max(0.0, (i / 8 - 0.25 + clip[0] / 16) * covered)
                end = min(covered, (i / 8 + 0.5 + clip[1] / 4) * covered)
                if end > start:
                    moments.append((-(float(clip @ asked) - ALPHA * negative), rank, i, name, start, end))
        kept: list[tuple[Any, ...]] = []
        for score, _, _, name, start, end in sorted(moments):
            near = [m for m in kept if m[1] == name and nms is not None and float(iou(start, end, m[2], m[3])) > nms]
            if not near and len(kept) < k:
                kept.append((query, name, start, end, -score))
        found += sorted(kept, key=lambda m: (-m[4], m[1], m[2], m[3]))
    return found


@pytest.mark.parametrize("nms", [None, 0.4])
@pytest.mark.parametrize("blocks", [{}, {"cells": 40, "batch": 1}])
def test_moments_are_ranked_and_suppressed_by_definition(small: Any, nms: float | None, blocks: dict[str, int]) -> None:
    world = small.world(videos=9, queries=6)
    rows = small.rows(predict(make(), world, world, k=7, nms=nms, **blocks))
    expected = by_loops(world, 7, nms)
    assert [r[:2] for r in rows] == [r[:2] for r in expected]
    np.testing.assert_allclose([r[2:] for r in rows], [r[2:] for r in expected], rtol=1e-6)
    edges = {1.5 * i for i in range(9)}
    assert any(start not in edges for _, _, start, _, _ in rows)


def test_the_known_video_and_much_asked_videos_are_searched_too(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = small.world(videos=4, queries=30)
    whole = small.rows(predict(make(), world, world, task="SVMR"))
    monkeypatch.setattr("momentseek.models.inference.second_stage.MIN_QUERIES_PER_VIDEO", 2)
    assert small.rows(predict(make(), world, world, task="SVMR")) == whole
    relevant = {(q, world.truth.videos[v]) for q, v in zip(world.truth.row_query, world.truth.video, strict=True)}
    assert {(world.truth.query_ids.index(q), v) for q, v, *_ in whole} <= relevant


@torch.no_grad()
def test_a_video_matches_by_its_best_moment(small: Any) -> None:
    model, g = make(), torch.Generator().manual_seed(0)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    queries = model.encode_words(Words(torch.randn(2, 3, 3, generator=g), torch.ones(2, 3, dtype=torch.bool)))
    videos = model.encode_clips(Clips(torch.randn(2, 3, 3, generator=g), None, mask))
    found = CorpusModel.match(model, queries, videos)
    every = torch.einsum("qd,vld->qvl", queries["query"], videos["clip"]).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(found, every.amax(2))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_diverged_model_is_named(small: Any, which: int) -> None:
    world, model = small.world(), make()
    before = model.moments

    def spoil(queries: Encodings, videos: Encodings) -> tuple[Tensor, ...]:
        found = before(queries, videos)
        return tuple(torch.full_like(x, torch.nan) if i == which else x for i, x in enumerate(found))

    model.moments = spoil  # type: ignore[method-assign, assignment]
    with pytest.raises(MomentseekError, match="diverged"):
        predict(model, world, world)
