from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import normalize

from momentseek.models.batch import Batch, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.cal import CAL


@torch.no_grad()
@pytest.mark.parametrize("endpoints", [True, False], ids=["endpoints", "plain"])
def test_a_span_scores_by_the_mean_of_its_clips_distances(
    make_batch: Callable[..., Batch], dims: Dims, endpoints: bool
) -> None:
    torch.manual_seed(0)
    model = build("cal", {"hidden": 8, "shortest": 2, "longest": 5, "moment_endpoints": endpoints}, dims).eval()
    assert isinstance(model, CAL)
    batch = make_batch()
    queries, videos = model.encode_words(batch.words), model.encode_clips(batch.clips)
    pick = torch.arange(4)
    grid = model.spans(take_rows(queries, pick), take_rows(videos, pick))
    for i in range(4):
        count = int(batch.clips.mask[i].sum())
        for s in range(count):
            for last in range(s + 1, min(s + 5, count)):
                far = []
                for name, part in (("video", batch.clips.video), ("subtitle", batch.clips.subtitle)):
                    rows = part[i, :count]
                    known = [rows.mean(0)] + ([torch.tensor([s / count, (last + 1) / count])] if endpoints else [])
                    known[0] = known[0] / (known[0].norm() + 1e-5)
                    for c in range(s, last + 1):
                        own = rows[c] / (rows[c].norm() + 1e-5)
                        vector = normalize(model.moment[name](torch.cat([own, *known])), dim=0)
                        far.append(float((vector - queries["query"][i]).square().sum()))
                assert grid[i, s, last - s - 1].item() == pytest.approx(-sum(far) / len(far), abs=1e-5)


@torch.no_grad()
def test_without_endpoints_a_clip_alone_is_never_worse(make_batch: Callable[..., Batch], dims: Dims) -> None:
    torch.manual_seed(0)
    model, batch = build("cal", {"hidden": 8, "moment_endpoints": False}, dims).eval(), make_batch()
    pick = torch.arange(4)
    grid = model.spans(
        take_rows(model.encode_words(batch.words), pick), take_rows(model.encode_clips(batch.clips), pick)
    )
    assert (grid[..., 0].amax(1) >= grid.flatten(1).amax(1) - 1e-6).all()
