"""CroCs: MMN that does not learn from false negatives, and then learns from hard ones (MVMR, section 6).

First stage: a video whose captions are nearly the query's (``positive`` of the batch: similarity at or above the
training setting ``related``, eq. 1) is not held against it; CroCs† of the paper stops here. Second stage, from the
first one's weights: negatives are drawn by how close the trained model's scores come to the truth's (eq. 2, 3;
``training.hard_negatives``), videos for queries and queries for videos, and only these count in the matching loss (eq.
5); the overlap's cross-entropy sees them with a target of nothing (eq. 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from momentseek.models.batch import Batch
from momentseek.models.mmn import SHARPNESS, Mmn, MmnConfig
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class CrocsConfig(MmnConfig):
    """CroCs' settings beside MMN's."""

    filter: bool = True
    """Leave out false negatives."""
    reject: float = 1.0
    """Weight of the overlap's cross-entropy on hard negative videos (target 0)."""


class Crocs(Mmn):
    """CroCs, both stages: which one depends on whether the batch carries hard negatives."""

    config: CrocsConfig

    def negatives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """In-batch videos and queries without the related ones; of hard negatives, those drawn."""
        if not self.config.filter:
            return super().negatives(batch)
        pairs = batch.pairs
        own = pairs.positive.clone()
        own[pairs.query, pairs.video] = True
        if pairs.hard_videos is None or pairs.hard_queries is None:
            return ~own, ~own
        return pairs.hard_videos & ~own, pairs.hard_queries & ~own

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """MMN's, and that hard negative videos overlap nothing."""
        terms = super().loss(batch, epoch, rng)
        hard = batch.pairs.hard_videos
        if hard is None or not self.config.reject:
            return terms
        query, video = (hard & ~batch.pairs.positive).nonzero(as_tuple=True)
        words, clips = self.encode_words(batch.words), self.encode_clips(batch.clips)
        cosine = torch.einsum("nd,ncd->nc", words["overlap"][query], clips["overlap"][video])
        # -log(1 - sigmoid(x)) is softplus(x)
        rejected = F.softplus(SHARPNESS * cosine).mean() if len(query) else cosine.sum()
        return {**terms, "rejection": self.config.reject * rejected}


register("crocs", CrocsConfig, Crocs, "CroCs: MMN without false negatives, then on hard negatives in both directions")
