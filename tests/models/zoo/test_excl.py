from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.excl import ExCL

Make = Callable[..., Batch]


def excl(dims: Dims, **settings: object) -> ExCL:
    torch.manual_seed(0)
    model = build("excl", {"hidden": 8, "endpoints": False, "dropout": 0.0, **settings}, dims).eval()
    assert isinstance(model, ExCL)
    return model


def by_hand(model: ExCL, batch: Batch, query: int, video: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Start and end log-probabilities of one video's clips, one clip at a time."""
    kind, count = model.config.predictor, int(batch.clips.mask[video].sum())
    words = batch.words.features[query : query + 1, : int(batch.words.mask[query].sum())]
    q = model.words(words, torch.ones(words.shape[:2], dtype=torch.bool))[1][0]
    everything = torch.ones(1, count, dtype=torch.bool)
    logits = torch.zeros(2, count)
    for name, part in (("video", batch.clips.video), ("subtitle", batch.clips.subtitle)):
        predictor = model.predictors[name]
        clips = model.clips[name](part[video : video + 1, :count], everything)[0][0]
        both = [torch.cat([clips[t], q]) for t in range(count)]
        before = [[], []]  # what each head sees beside clip and query
        if kind != "mlp":
            start = predictor.first(torch.stack(both)[None], everything)[0]
            end = predictor.second(start, everything)[0] if kind == "conditioned-lstm" else start
            before = [start[0], end[0]]
        for which, head in enumerate((predictor.start, predictor.end)):
            for t in range(count):
                x = both[t] if kind == "mlp" else torch.cat([before[which][t], both[t]])
                logits[which, t] += (head[3].weight @ torch.tanh(head[0].weight @ x + head[0].bias))[0] / 2
    return logits[0].log_softmax(0), logits[1].log_softmax(0)


@torch.no_grad()
@pytest.mark.parametrize("predictor", ["mlp", "tied-lstm", "conditioned-lstm"])
def test_predicts_boundaries_from_clips_joined_with_the_query(make_batch: Make, dims: Dims, predictor: str) -> None:
    model, batch = excl(dims, predictor=predictor), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    pick = torch.arange(4)
    start, end = model.boundaries(take_rows(queries, pick), take_rows(videos, pick))
    grid = model.spans(take_rows(queries, pick), take_rows(videos, pick))
    for i in range(4):
        first, last = by_hand(model, batch, i, i)
        torch.testing.assert_close(start[i, : len(first)], first)
        torch.testing.assert_close(end[i, : len(last)], last)
        assert grid[i, 0, 2].item() == pytest.approx(float(first[0] + last[2]), abs=1e-5)


def test_the_loss_is_the_cross_entropy_of_both_ends(make_batch: Make, dims: Dims) -> None:
    model, batch = excl(dims), make_batch()
    pairs, total = batch.pairs, 0.0
    with torch.no_grad():
        for p in range(len(pairs.query)):
            start, end = by_hand(model, batch, int(pairs.query[p]), int(pairs.video[p]))
            total -= float(pairs.weight[p] * (start[pairs.start[p]] + end[pairs.end[p]]))
    assert model.loss(batch, 0, torch.Generator())["span"].item() == pytest.approx(total / len(pairs.query), rel=1e-5)


def test_it_says_that_it_needs_a_first_stage(make_batch: Make, dims: Dims) -> None:
    model, batch = excl(dims), make_batch()
    assert not model.retrieves
    assert model.match(model.encode_words(batch.words), model.encode_clips(batch.clips)).abs().sum() == 0


def test_an_unknown_predictor_is_named(dims: Dims) -> None:
    with pytest.raises(MomentseekError, match="one of mlp, tied-lstm, conditioned-lstm, not 'gru'"):
        excl(dims, predictor="gru")
