"""CroCs: MMN that does not learn from false negatives, and then learns from hard ones (MVMR, section 6).

First stage: a video whose captions are nearly the query's (``positive`` of the batch, eq. 1: similarity at or above
``related`` in the data's data.toml) is not held against it; CroCs† of the paper stops here. Second stage, from the
first one's weights: negatives are drawn by how close the trained model's scores come to the truth's (eq. 2, 3;
``training.hard_negatives``), videos for queries and queries for videos, and only these count in the matching loss (eq.
5). In both, the overlap's cross-entropy sees the negative videos with a target of nothing (eq. 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from momentseek.models.batch import Batch, Encodings
from momentseek.models.model import at_least
from momentseek.models.registry import register
from momentseek.models.zoo.mmn import OVERLAP_SHARPNESS, Mmn, MmnConfig


@dataclass(frozen=True, kw_only=True)
class CrocsConfig(MmnConfig):
    """CroCs' settings in addition to MMN's."""

    filter: bool = True
    """Leave out false negatives."""
    reject: float = 1.0
    """Weight of the overlap's cross-entropy on negative videos (target 0); 0 leaves it out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 0, "reject")


class Crocs(Mmn):
    """CroCs, both stages: which one depends on whether the batch carries hard negatives."""

    hard_negatives: ClassVar[bool] = True
    config: CrocsConfig

    def negatives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which videos are negatives of each query, and which queries of each video.

        They are those of the batch without the related ones or, in a direction with hard negatives, the ones drawn.
        """
        pairs = batch.pairs
        own = pairs.positive.clone() if self.config.filter else torch.zeros_like(pairs.positive)
        own[pairs.query, pairs.video] = True
        others = ~own
        return (
            others if pairs.hard_videos is None else others & pairs.hard_videos,
            others if pairs.hard_queries is None else others & pairs.hard_queries,
        )

    def terms(self, batch: Batch, words: Encodings, clips: Encodings, epoch: int) -> dict[str, Tensor]:
        """MMN's, and that negative videos of the queries asked overlap nothing (eq. 4 with a target of 0; mean)."""
        terms = super().terms(batch, words, clips, epoch)
        if not self.config.reject:
            return terms
        asking = batch.pairs.query.unique()  # type: ignore[no-untyped-call]  # others came as negatives of videos
        wrong = self.negatives(batch)[0][asking]
        cosine = torch.einsum("qd,vcd->qvc", words["overlap"][asking], clips["overlap"])
        # -log(1 - sigmoid(x)) is softplus(x)
        each = F.softplus(OVERLAP_SHARPNESS * cosine).mean(2) * wrong
        return {**terms, "rejection": self.config.reject * each.sum() / wrong.sum().clamp(min=1)}


register(
    "crocs",
    CrocsConfig,
    Crocs,
    "CroCs: MMN without false negatives, then on hard negatives in both directions",
    format=2,
)
