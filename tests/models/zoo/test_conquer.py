from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.conquer import Conquer

Make = Callable[..., Batch]
SMALL = {"hidden": 8, "heads": 2, "feedforward": 12, "clusters": 3, "head": 4, "longest": 5, "dropout": 0.0}


def conquer(dims: Dims, **settings: object) -> Conquer:
    torch.manual_seed(0)
    model = build("conquer", {**SMALL, **settings}, dims).eval()
    assert isinstance(model, Conquer)
    return model


def by_hand(model: Conquer, batch: Batch, query: int, video: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Begin and end logits of one video's clips for one query, and the fused clips that led to them."""
    words = batch.words.features[query : query + 1, : int(batch.words.mask[query].sum())]
    count = int(batch.clips.mask[video].sum())
    there, said = torch.ones(1, count, dtype=torch.bool), torch.ones(words.shape[:2], dtype=torch.bool)
    q = model.word_encoder(model.word_positions(model.project_words(words) + model.word_kind), said)
    both = []
    for m, (name, part) in enumerate((("video", batch.clips.video), ("subtitle", batch.clips.subtitle))):
        typed = model.project_clips[name](part[video : video + 1, :count]) + model.kind(torch.tensor(m))
        both.append(model.clip_positions(typed))
    joint = model.joint(torch.cat(both, 1), torch.ones(1, 2 * count, dtype=torch.bool))
    weight = model.weigh(q, said)[0]
    clips = weight[0] * joint[:, :count] + weight[1] * joint[:, count:]
    aware = model.read(clips, there, q, said)
    context = model.contextual(aware, there)
    known = torch.cat([aware, context], -1)
    begun = model.begin.encoder(known, there)
    ended = model.end.encoder(torch.cat([context, begun], -1), there)
    logits = []
    for head, x in ((model.begin, begun[0]), (model.end, ended[0])):
        wide = torch.zeros(count, model.config.head)
        for t in range(count):
            for tap in range(5):
                if 0 <= t + tap - 2 < count:
                    wide[t] += head.wide.weight[:, :, tap] @ x[t + tap - 2]
        logits.append(wide.relu() @ head.narrow.weight[0, :, 0])
    return logits[0], logits[1], known[0]


def video_score(model: Conquer, known: torch.Tensor) -> torch.Tensor:
    there = torch.ones(1, len(known), dtype=torch.bool)
    return model.whole_score(model.whole(known[None], there)[0].amax(0))


@torch.no_grad()
@pytest.mark.parametrize("score", ["disjoint", "general", "exclusive"])
def test_a_span_scores_by_begin_and_end(make_batch: Make, dims: Dims, score: str) -> None:
    model, batch = conquer(dims, score=score, alpha=1.0 if score == "general" else 0.0), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    pick = torch.arange(4)
    grid = model.spans(take_rows(queries, pick), take_rows(videos, pick))
    for i in range(4):
        begin, end, known = by_hand(model, batch, i, i)
        if score != "disjoint":
            begin, end = begin.log_softmax(0), end.log_softmax(0)
        video = float(video_score(model, known)) if score == "exclusive" else 0.0
        for s in range(len(begin)):
            for w in range(min(5, len(begin) - s)):
                assert grid[i, s, w].item() == pytest.approx(float(begin[s] + end[s + w]) + video, abs=1e-5)


def test_clips_of_wrong_videos_share_the_normalisation(make_batch: Make, dims: Dims) -> None:
    """As many wrong videos are asked for as there are, so that none is left to chance."""
    model, batch = conquer(dims, negatives=9, score="exclusive"), make_batch()
    found, pairs = model.loss(batch, 0, torch.Generator().manual_seed(0)), batch.pairs
    span = video = 0.0
    with torch.no_grad():
        for p, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
            shown = [v, *(o for o in range(4) if not pairs.positive[q, o])]
            parts = [by_hand(model, batch, q, o) for o in shown]
            for which, place in ((0, pairs.start[p]), (1, pairs.end[p])):
                span -= float(pairs.weight[p] * torch.cat([part[which] for part in parts]).log_softmax(0)[place])
            scores = [video_score(model, known) for *_, known in parts]
            video -= float(pairs.weight[p] * torch.cat(scores).log_softmax(0)[0])
    assert found["span"].item() == pytest.approx(0.01 * span / len(pairs.query), rel=1e-4)
    assert found["video"].item() == pytest.approx(0.05 * video / len(pairs.query), rel=1e-4)


def test_without_negatives_each_video_is_normalised_alone(make_batch: Make, dims: Dims) -> None:
    model, batch = conquer(dims, negatives=0, span_weight=1.0), make_batch()
    found, pairs, total = model.loss(batch, 0, torch.Generator()), batch.pairs, 0.0
    with torch.no_grad():
        for p in range(len(pairs.query)):
            begin, end, _ = by_hand(model, batch, int(pairs.query[p]), int(pairs.video[p]))
            value = begin.log_softmax(0)[pairs.start[p]] + end.log_softmax(0)[pairs.end[p]]
            total -= float(pairs.weight[p] * value)
    assert found["span"].item() == pytest.approx(total / len(pairs.query), rel=1e-4)


def test_wrong_videos_are_those_that_the_batch_brings(make_batch: Make, dims: Dims) -> None:
    """With one listed video for each query, the normalisation is shared with that one alone."""
    model, batch = conquer(dims, negatives=3, span_weight=1.0, positive_mask=False), make_batch(2, 4, 2)
    pairs, total = batch.pairs, 0.0
    hard = torch.tensor([[False, False, True, False], [False, False, False, True]])
    found = model.loss(replace(batch, pairs=replace(pairs, hard_videos=hard)), 0, torch.Generator())
    with torch.no_grad():
        for p in range(2):
            parts = [by_hand(model, batch, p, v) for v in (p, p + 2)]
            for which, place in ((0, pairs.start[p]), (1, pairs.end[p])):
                total -= float(pairs.weight[p] * torch.cat([part[which] for part in parts]).log_softmax(0)[place])
    assert found["span"].item() == pytest.approx(total / 2, rel=1e-4)


def test_a_first_stages_scores_multiply_probabilities(dims: Dims) -> None:
    scores = np.array([[0.5, 2.0, -np.inf]])
    product = conquer(dims, score="general", alpha=1.0)
    np.testing.assert_allclose(np.exp(product.weigh_first_stage(scores)), [[0.5, 2.0, 0.0]])
    assert conquer(dims, score="general", alpha=1.0, multiply=False).weigh_first_stage(scores) is scores
    with pytest.raises(MomentseekError, match="multiply=false"):
        product.weigh_first_stage(-scores[:, :2])


def test_the_query_weighs_the_modalities(make_batch: Make, dims: Dims) -> None:
    weights = conquer(dims).encode_words(make_batch().words)["weights"]
    torch.testing.assert_close(weights.sum(1), torch.ones(5))
    assert conquer(dims, modalities="video").encode_words(make_batch().words)["weights"].tolist() == [[1.0]] * 5


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"score": "joint"}, "disjoint or general or exclusive"),
        ({"score": "general"}, "set alpha"),
        ({"negatives_from": "corpus"}, "list or batch"),
        ({"alpha": 2.0}, "set score to general"),
        ({"kernel": 4}, "must be odd"),
        ({"heads": 3}, "cannot be divided among 3 heads"),
    ],
    ids=["score", "no alpha", "negatives", "alpha", "kernel", "heads"],
)
def test_settings_that_do_not_go_together_are_named(dims: Dims, settings: dict[str, object], told: str) -> None:
    with pytest.raises(MomentseekError, match=told):
        conquer(dims, **settings)
