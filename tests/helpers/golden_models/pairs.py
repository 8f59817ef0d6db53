"""Batches of golden files: query i with video i, and negatives that are drawn as the file says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

from golden_models import GoldenFile
from momentseek.models.batch import Batch, BatchPairs, Clips, Words


def words_of(golden: GoldenFile) -> Words:
    return Words(golden.input["query_feat"], golden.input["query_mask"])


def clips_of(golden: GoldenFile) -> Clips:
    given = golden.input
    mask = given["video_mask"] if "video_mask" in given else given["sub_mask"]
    return Clips(given.get("video_feat"), given.get("sub_feat"), mask)


def batch_of(golden: GoldenFile, words: Words, clips: Clips) -> Batch:
    """Pairs of query i and video i, related to nothing else."""
    count = len(words.mask)
    each, spans = torch.arange(count), golden.input.get("st_ed_indices", torch.zeros(count, 2, dtype=torch.long))
    weight = golden.input.get("simi", torch.ones(count, dtype=golden.dtype))
    related = torch.zeros(count, count, dtype=torch.bool)
    return Batch(words, clips, BatchPairs(each, each, spans[:, 0], spans[:, 1], weight, related))


def own_video(video: Tensor, dtype: torch.dtype, times: Tensor | None = None) -> BatchPairs:
    """Pairs of query i and its video ``video[i]``, which answers that video's other queries too."""
    every = torch.arange(len(video))
    positive = video[:, None] == torch.arange(int(video.max()) + 1)
    return BatchPairs(every, video, every, every, torch.ones(len(video), dtype=dtype), positive, times)


@contextmanager
def draws(where: str, *columns: Tensor) -> Iterator[None]:
    """Have ``draw_negatives`` of a module give these columns, one after another."""
    rest: list[Tensor] = list(columns)

    def draw(scores: Tensor, allowed: Tensor, pool: int | None, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        column = rest.pop(0)
        assert allowed.gather(1, column[:, None]).all(), "a golden file draws what our model would not"
        return column, torch.ones_like(column, dtype=torch.bool)

    with patch(f"{where}.draw_negatives", draw):
        yield
    assert not rest


def crossed(count: int, others: int) -> Sequence[Tensor]:
    """Rows of queries and of videos, every query with every video."""
    return torch.cartesian_prod(torch.arange(count), torch.arange(others)).unbind(1)
