from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch, Clips, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build


def tef_only(dims: Dims) -> CorpusModel:
    torch.manual_seed(0)
    return build("tef-only", {"hidden": 8, "longest": 4}, dims).eval()


@torch.no_grad()
def test_a_span_scores_by_where_it_lies(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = tef_only(dims), make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    pick = torch.arange(4)
    grid = model.spans(take_rows(queries, pick), take_rows(videos, pick))
    for i in range(4):
        count = int(batch.clips.mask[i].sum())
        for s in range(count):
            for w in range(min(4, count - s)):
                m = model.moment(torch.tensor([s / count, (s + w + 1) / count]))
                far = (m / m.norm() - queries["query"][i]).square().sum()
                assert grid[i, s, w].item() == pytest.approx(-float(far), abs=1e-5)


@torch.no_grad()
def test_it_is_blind(make_batch: Callable[..., Batch], dims: Dims) -> None:
    model, batch = tef_only(dims), make_batch()
    other = Clips(batch.clips.video + 1, None, batch.clips.mask)
    queries, pick = model.encode_words(batch.words), torch.arange(4)
    seen, unseen = model.encode_clips(batch.clips), model.encode_clips(other)
    assert torch.equal(model.match(queries, seen), model.match(queries, unseen))
    first, second = (model.spans(take_rows(queries, pick), take_rows(videos, pick)) for videos in (seen, unseen))
    assert torch.equal(first, second)
