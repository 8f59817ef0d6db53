"""CroCs: MMN trained without false negatives, and then with hard negatives (MVMR, section 6).

In the first stage, a video whose captions are nearly the query's is not a negative (``positive`` of the batch, eq. 1,
from the file ``related`` in data.toml); CroCs† of the paper stops here. The second stage starts from these weights. It
draws negatives by how close the trained model's scores are to those of true pairs (eq. 2, 3; ``training.negatives``),
videos for queries and queries for videos, and the matching loss uses only these (eq. 5). In both stages, the overlap's
cross-entropy includes the negative videos with a target of 0 (eq. 4).
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
    """Exclude false negatives."""
    reject: float = 1.0
    """Weight of the overlap's cross-entropy on negative videos (target 0); 0 leaves it out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 0, "reject")


class Crocs(Mmn):
    """CroCs, for both stages; a batch with hard negatives is of the second stage."""

    hard_negatives: ClassVar[bool] = True
    config: CrocsConfig

    def negatives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which videos are negatives of each query, and which queries of each video.

        They are those of the batch that are not related or, in a direction with hard negatives, the drawn ones.
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
        """MMN's terms, and the overlap's cross-entropy on negative videos (eq. 4 with a target of 0)."""
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
