"""MS-SL: its score is the brute-force maximum over all spans, and its losses are their sums written out."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.ms_sl import MsSl, MsSlConfig, clip_contrast, even_parts, frame_contrast_of, span_means

DIMS = Dims(query=6, video=7, subtitle=None)
SMALL = {"hidden": 8, "heads": 2, "parts": 5, "max_clips": 16, "dropout": 0.0}


def make() -> MsSl:
    torch.manual_seed(0)
    return MsSl(MsSlConfig(**SMALL), DIMS).eval()  # type: ignore[arg-type]


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def test_parts_are_means_of_equal_time() -> None:
    rows = torch.rand(1, 7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = even_parts(rows, torch.arange(7)[None] < 5, 3)
    for i in range(3):
        a, b = i * 5 / 3, (i + 1) * 5 / 3
        total = sum(max(0.0, min(b, r + 1) - max(a, r)) * rows[0, r] for r in range(5))
        torch.testing.assert_close(found[0, i], total / (5 / 3))


@torch.no_grad()
def test_a_video_scores_by_its_best_span_and_the_frames_it_guides(make_batch: Callable[..., Batch]) -> None:
    model, batch = make(), make_batch(3, 2, 4, dims=DIMS)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    found = model.match(queries, videos)
    for q, query in enumerate(queries["query"]):
        for v, parts in enumerate(videos["parts"]):
            spans = [parts[a : b + 1].mean(0) for a in range(5) for b in range(a, 5)]
            best = max(spans, key=lambda span: cosine(query, span))
            frames = videos["frames"][v][videos["mask"][v]]
            e = [math.exp(float(best @ (model.key.weight @ f))) for f in frames]
            seen = sum(x / sum(e) * (model.value.weight @ f) for x, f in zip(e, frames, strict=True))
            expected = 0.7 * cosine(query, best) + 0.3 * cosine(query, seen)
            assert found[q, v].item() == pytest.approx(expected, abs=1e-5)


@torch.no_grad()
def test_padding_changes_no_score(make_batch: Callable[..., Batch]) -> None:
    model, batch = make(), make_batch(3, 4, 8, dims=DIMS)
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    together = model.match(queries, videos)
    assert batch.clips.video is not None
    for v in range(4):
        n = int(batch.clips.mask[v].sum())
        alone = Clips(batch.clips.video[v : v + 1, :n], None, batch.clips.mask[v : v + 1, :n])
        torch.testing.assert_close(model.match(queries, model.encode_clips(alone))[:, 0], together[:, v])


def pairs() -> BatchPairs:
    query, video = torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])
    positive = torch.tensor([[True, False], [True, False], [False, True]])
    zero = torch.zeros(3, dtype=torch.long)
    return BatchPairs(query, video, zero, zero, torch.ones(3), positive)


def test_the_clips_contrast_is_over_videos_and_over_queries() -> None:
    s = torch.randn(3, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    e = [[math.exp(x) for x in row] for row in s.tolist()]
    to_video = sum(-math.log(e[q][v] / sum(e[q])) for q, v in ((0, 0), (1, 0), (2, 1))) / 3
    column = [sum(e[q][v] for q in range(3)) for v in range(2)]
    to_query = -(math.log((e[0][0] + e[1][0]) / column[0]) + math.log(e[2][1] / column[1])) / 2
    assert clip_contrast(s, pairs(), torch.ones(3)).item() == pytest.approx(to_video + to_query)


def test_the_frames_contrast_counts_the_pair_twice_and_spares_siblings() -> None:
    s = torch.randn(3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    model = make()
    known = model.siblings(pairs())
    assert known.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    found = frame_contrast_of(s, known)
    for i in range(3):
        others = [j for j in range(3) if not known[i, j]]
        total = 2 * math.exp(s[i, i]) + sum(math.exp(s[i, j]) + math.exp(s[j, i]) for j in others)
        assert found[i].item() == pytest.approx(-math.log(math.exp(s[i, i]) / total))


def test_triplets_hold_a_videos_mean_against_a_wrong_query() -> None:
    model = make()
    s = torch.tensor([[0.5, 0.45], [0.1, 0.0], [0.6, 0.2]])
    found = model.clip_triplets(s, pairs(), torch.ones(3), 1, torch.Generator())
    mean = (0.5 + 0.1) / 2
    videos = [0.2 + 0.45 - 0.5, 0.2 + 0.0 - 0.1, 0.2 + 0.6 - 0.2]
    queries = [0.2 + 0.6 - mean, 0.2 + 0.45 - 0.2]  # of each video once, however many queries it has
    assert found.item() == pytest.approx(sum(videos) / 3 + sum(queries) / 2)


def test_gradients_reach_every_parameter_and_twenty_pairs_are_learnt(make_batch: Callable[..., Batch]) -> None:
    torch.manual_seed(0)
    model = build("ms_sl", {**SMALL, "hidden": 16}, DIMS)
    batch = make_batch(12, 12, 12, dims=DIMS)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-2, fused=True)
    for step in range(40):
        optimiser.zero_grad()
        terms = model.loss(batch, step // 10, torch.Generator().manual_seed(step))
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        if not step:
            assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []
        optimiser.step()
    model.eval()
    with torch.no_grad():
        scores = model.match(model.encode_words(batch.words), model.encode_clips(batch.clips))
    assert (scores.argmax(1) == torch.arange(12)).float().mean() > 0.7


def test_spans_are_the_means_of_all_neighbours() -> None:
    rows = torch.rand(1, 4, 3, generator=torch.Generator().manual_seed(0))
    expected = torch.stack([rows[0, a : b + 1].mean(0) for a in range(4) for b in range(a, 4)])
    torch.testing.assert_close(span_means(rows)[0], expected)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(MomentseekError, match="clip_share must be from 0 to 1"):
        MsSlConfig(clip_share=1.5)
    with pytest.raises(MomentseekError, match="reads one modality"):
        MsSlConfig(modalities="video+subtitle")
