"""Models learn: twenty pairs by heart within seconds, searched as a corpus and measured as any run is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.models.batch import Batch, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build

DIMS = Dims(query=12, video=12, subtitle=12)
SMALL = {"hidden": 32, "heads": 2, "max_clips": 20, "dropout": 0.0, "longest": 5}


@torch.no_grad()
def ndcg(model: CorpusModel, batch: Batch) -> float:
    """NDCG@20[IoU>=0.7] of the moments found among all videos of the batch."""
    model.eval()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    match, count = model.match(queries, videos), len(batch.clips)
    found = []
    for q in range(len(match)):
        grid = model.spans(take_rows(queries, torch.full((count,), q)), take_rows(videos, torch.arange(count)))
        score = (grid + model.config.alpha * match[q, :, None, None]).flatten()
        best = score.topk(20)
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            video, rest = divmod(place, grid[0].numel())
            start, more = divmod(rest, grid.shape[2])
            found.append((str(q), str(video), start * 1.5, (start + more + 1) * 1.5, value))
    pairs = batch.pairs
    truth = [
        (str(q), str(v), s * 1.5, (e + 1) * 1.5, 1)
        for q, v, s, e in zip(*(x.tolist() for x in (pairs.query, pairs.video, pairs.start, pairs.end)), strict=True)
    ]
    name = "NDCG@20[IoU>=0.7]"
    return evaluate(Run.from_rows(found), Judgements.from_rows(truth), [name]).means[name]


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
def test_twenty_pairs_are_learnt_by_heart(name: str, make_batch: Callable[..., Batch]) -> None:
    torch.manual_seed(0)
    model, batch = build(name, SMALL, DIMS), make_batch(20, 20, 20, dims=DIMS)
    assert ndcg(model, batch) < 0.5
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=8e-3, fused=True)
    losses = []
    for step in range(100):
        loss = torch.stack(list(model.loss(batch, 0, torch.Generator().manual_seed(step)).values())).sum()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
        if step % 10 == 9 and sum(losses[-10:]) < 0.3 * sum(losses[:10]) and ndcg(model, batch) > 0.9:
            return
        model.train()
    pytest.fail(f"the loss fell from {losses[0]:.3f} to {losses[-1]:.3f}, and NDCG is {ndcg(model, batch):.3f}")
