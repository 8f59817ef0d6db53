"""Which queries and videos of a batch belong together: the positive-pair mask (TVR-Ranking, appendix C.1).

A query of TVR-Ranking has up to 40 moments, so a batch can hold several videos that answer it. The paper takes none of
them for a negative; the public code takes all but the pair's own (``masked=False``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from momentseek.models.batch import BatchPairs


@dataclass(frozen=True, eq=False)
class RelatedMasks:
    """Which videos and queries of a batch are related to each pair."""

    videos: Tensor
    """(pairs, videos), True where the video answers the pair's query."""
    queries: Tensor
    """(pairs, queries), True where the query is answered by the pair's video."""


def related_masks(pairs: BatchPairs, *, masked: bool = True) -> RelatedMasks:
    """Masks of what is related to each pair: all that the training set says, or (unmasked) only the pair itself."""
    queries, videos = pairs.positive.shape
    own_video = pairs.video[:, None] == torch.arange(videos, device=pairs.video.device)
    own_query = pairs.query[:, None] == torch.arange(queries, device=pairs.query.device)
    if not masked:
        return RelatedMasks(own_video, own_query)
    return RelatedMasks(own_video | pairs.positive[pairs.query], own_query | pairs.positive.T[pairs.video])
