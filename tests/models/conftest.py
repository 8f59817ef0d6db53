"""Random batches, as every model takes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims

DIMS = Dims(query=6, video=7, subtitle=5)


def random_batch(queries: int = 5, videos: int = 4, pairs: int = 8, seed: int = 0, dims: Dims = DIMS) -> Batch:
    """Queries of 2 to 6 words, videos of 3 to 12 clips, pairs that cover every query and video they can."""
    rng = torch.Generator().manual_seed(seed)
    words = torch.randint(2, 7, (queries, 1), generator=rng)
    clips = torch.randint(3, 13, (videos, 1), generator=rng)
    word_mask = torch.arange(int(words.max())) < words
    clip_mask = torch.arange(int(clips.max())) < clips

    def features(mask: torch.Tensor, width: int | None) -> torch.Tensor | None:
        return None if width is None else torch.randn(*mask.shape, width, generator=rng) * mask[..., None]

    query, video = torch.arange(pairs) % queries, torch.arange(pairs) % videos
    start = (torch.rand(pairs, generator=rng) * clips[video, 0]).long()
    end = torch.minimum(start + torch.randint(0, 5, (pairs,), generator=rng), clips[video, 0] - 1)
    positive = torch.zeros(queries, videos, dtype=torch.bool)
    positive[query, video] = True
    text = features(word_mask, dims.query)
    assert text is not None
    return Batch(
        Words(text, word_mask),
        Clips(features(clip_mask, dims.video), features(clip_mask, dims.subtitle), clip_mask),
        BatchPairs(query, video, start, end, torch.rand(pairs, generator=rng), positive),
    )


@pytest.fixture(scope="session")
def make_batch() -> Callable[..., Batch]:
    """``make_batch(queries, videos, pairs, seed, dims)``: a random batch, of 6, 7 and 5 columns if not said."""
    return random_batch


@pytest.fixture(scope="session")
def dims() -> Dims:
    """The columns of ``make_batch``."""
    return DIMS
