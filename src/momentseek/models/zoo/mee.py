"""MEE, mixture of embedding experts: one space per modality, weighted by the query (Miech et al., 2018).

It retrieves videos and not moments: it is the first stage of TVR's retrieval + re-ranking baselines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import NetVLAD
from momentseek.models.layers.projection import Dropout, clip_width
from momentseek.models.layers.spans import even_spans
from momentseek.models.losses import RelatedMasks, hinge, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig, one_of
from momentseek.models.registry import register

POOLING_METHODS = ("max", "mean", "netvlad")
UNIT_EPSILON = 1e-5
"""Added to a norm before dividing by it, as in the code of TVR's feature files."""


def max_margin(
    scores: Tensor, pairs: BatchPairs, known: RelatedMasks, margin: float, *, true_pairs: bool = False
) -> Tensor:
    """One value per pair (q, v) from ``scores`` (queries, videos): the mean hinge over all wrong videos and queries.

    It is the mean of ``mean_v' max(0, D + s(q, v') - s(q, v))`` and ``mean_q' max(0, D + s(q', v) - s(q, v))``, where
    v' and q' are all that are not related by ``known``; 0 if the batch has none. With ``true_pairs``, v and q
    themselves are included, each as a constant D, as in the public code.
    """
    own = scores[pairs.query, pairs.video][:, None]
    total = torch.zeros_like(own[:, 0])
    for rows, taken, place in (
        (scores[pairs.query], known.videos, pairs.video),
        (scores.T[pairs.video], known.queries, pairs.query),
    ):
        counted = ~taken
        if true_pairs:
            counted = counted.scatter(1, place[:, None], True)
        total = total + (hinge(own, rows, margin) * counted).sum(1) / counted.sum(1).clamp(min=1)
    return total / 2


@dataclass(frozen=True, kw_only=True)
class MEEConfig(ModelConfig):
    """Settings of the model MEE."""

    official: ClassVar[Mapping[str, Any]] = {
        "pooling": "mean",
        "unit": True,
        "weights": "raw",
        "batch_norm": True,
        "masked": False,
        "true_pairs": True,
        "positive_mask": False,
        "weighting": "none",
    }
    clusters: int = 2
    """Number of centres with which NetVLAD pools the words."""
    pooling: str = "max"
    """How a modality's clips are pooled into one vector: ``max``, ``mean`` or ``netvlad``."""
    clip_clusters: int = 16
    """Number of centres with which NetVLAD pools clips."""
    unit: bool = False
    """Normalise a modality's pooled clips to length 1, as in TVR's public code."""
    weights: str = "softmax"
    """A query's weights of the modalities: ``softmax`` over the modalities that a video has (MEE, section 3.2), or
    ``raw`` as in TVR's public code."""
    batch_norm: bool = False
    """Batch normalisation in the gates and in NetVLAD's assignment, as in TVR's public code."""
    masked: bool = True
    """Make scores independent of padding; with False, NetVLAD pools padding like words, as in TVR's public code."""
    margin: float = 0.2
    true_pairs: bool = False
    """Include each pair's hinge with itself, which adds the margin twice, as in TVR's public code."""
    weighting: str = "linear"
    """How a pair is weighted by the similarity of query and caption: ``linear``, ``exponential`` or ``none``."""
    positive_mask: bool = True
    """Exclude videos from the negatives that are related to the query in the training set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "pooling", *POOLING_METHODS)
        one_of(self, "weights", "softmax", "raw")


class GatedEmbedding(nn.Module):
    """``y = W1 x + b1``, gated by itself, ``y * sigmoid(norm(W2 y + b2))``, of length 1 (section 3.1)."""

    def __init__(self, width: int, hidden: int, *, batch_norm: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.gate = nn.Linear(hidden, hidden)
        self.norm: nn.Module = nn.BatchNorm1d(hidden) if batch_norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return F.normalize(y * self.norm(self.gate(y)).sigmoid(), dim=-1)


class MEE(CorpusModel):
    """MEE: ``s(q, v) = sum_m w_m(q) <text_m(q), expert_m(v)>``, with weights over the modalities that a video has."""

    config: MEEConfig

    def __init__(self, config: MEEConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = config.modality_names
        norm = "batch" if config.batch_norm else "linear"
        self.words = NetVLAD(dims.query, config.clusters, norm=norm, masked=config.masked)
        self.dropout = Dropout(config.dropout)
        self.weigh = nn.Linear(self.words.width, len(self.modalities)) if len(self.modalities) > 1 else None

        def embedding(width: int) -> GatedEmbedding:
            return GatedEmbedding(width, config.hidden, batch_norm=config.batch_norm)

        self.text = nn.ModuleDict({name: embedding(self.words.width) for name in self.modalities})
        widths = {name: clip_width(dims, config, name) for name in self.modalities}
        pools = {n: NetVLAD(w, config.clip_clusters) for n, w in widths.items() if config.pooling == "netvlad"}
        widths |= {n: pool.width for n, pool in pools.items()}
        self.pools = nn.ModuleDict(pools)
        self.experts = nn.ModuleDict({n: embedding(w) for n, w in widths.items()})

    def encode_words(self, words: Words) -> Encodings:
        pooled = self.dropout(self.words(words.features, words.mask))
        encoded = {name: self.text[name](pooled) for name in self.modalities}
        ones = pooled.new_zeros(len(pooled), 1)
        return encoded | {"weights": self.weigh(pooled) if self.weigh is not None else ones}

    def encode_clips(self, clips: Clips) -> Encodings:
        encoded: Encodings = {"mask": clips.mask}
        there = []
        for name in self.modalities:
            x = clips.modality(name)
            pooled = self._pool(name, x, clips.mask)
            if self.config.unit:
                pooled = pooled / (pooled.norm(dim=-1, keepdim=True) + UNIT_EPSILON)
            encoded[name] = self.experts[name](self.dropout(pooled))
            content = x[..., :-2] if self.config.endpoints else x
            there.append((content != 0).any(-1).logical_and(clips.mask).any(1))
        return encoded | {"there": torch.stack(there, 1)}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        if self.config.weights == "raw":
            each = torch.stack([queries[name] @ videos[name].T for name in self.modalities], 2)
            return each.squeeze(2) if self.weigh is None else (each * queries["weights"][:, None]).sum(2)
        there = videos["there"].to(queries["weights"].dtype)
        rest = (queries["weights"] - queries["weights"].amax(1, keepdim=True)).exp()
        parts = [
            rest[:, m, None] * there[:, m] * (queries[name] @ videos[name].T) for m, name in enumerate(self.modalities)
        ]
        return torch.stack(parts).sum(0) / (rest @ there.T).clamp(min=1e-12)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Return the same score for every span that fits."""
        return even_spans(videos["mask"], self.config.shortest, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        scores = self.match(self.encode_words(batch.words), self.encode_clips(batch.clips))
        known = related_masks(batch.pairs, masked=self.config.positive_mask)
        values = max_margin(scores, batch.pairs, known, self.config.margin, true_pairs=self.config.true_pairs)
        return {"max_margin": weighted_mean(values, pair_weights(batch.pairs.weight, self.config.weighting))}

    def _pool(self, name: str, x: Tensor, mask: Tensor) -> Tensor:
        if self.config.pooling == "netvlad":
            return self.pools[name](x, mask)
        if self.config.pooling == "mean":
            return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return x.masked_fill(~mask[..., None], -torch.inf).amax(1)


register("mee", MEEConfig, MEE, "mixture of embedding experts: video retrieval, the first stage of two")
