"""ReLoCLNet: XML with contrastive learning (Zhang et al. 2021, SIGIR).

It is a deeper XML (two query layers, three per modality) that ranks videos on its last layer. Two more terms train its
middle layer: VideoCL contrasts a query with all videos of the batch (MIL-NCE over the best clips' dot products), and
FrameCL contrasts the clips of the moment with the other clips of its video.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from momentseek.models.batch import Batch, BatchPairs, Encodings
from momentseek.models.layers.attention import best_clip
from momentseek.models.layers.spans import inside
from momentseek.models.losses import RelatedMasks, related_masks, weighted_mean
from momentseek.models.registry import register
from momentseek.models.zoo.xml import XML, XMLConfig


def frame_contrast(curve: Tensor, moment: Tensor, mask: Tensor) -> Tensor:
    """FrameCL: one value per row of ``curve`` (n, clips); ``moment`` is True in the moment, ``mask`` in the video.

    >>> import torch
    >>> frame_contrast(torch.zeros(1, 3), torch.tensor([[True, False, False]]), torch.ones(1, 3) > 0).item()
    0.0
    """
    outside = mask & ~moment
    earned = (math.log(2) - softplus(-curve)).masked_fill(~moment, 0.0).sum(1) / moment.sum(1).clamp(min=1)
    cost = (softplus(curve) - math.log(2)).masked_fill(~outside, 0.0).sum(1) / outside.sum(1).clamp(min=1)
    return cost - earned


def mil_nce(scores: Tensor, pairs: BatchPairs, known: RelatedMasks, *, pair_once: bool = True) -> Tensor:
    """``-log(sum_P e^s / (sum_P e^s + sum_N e^s))`` for each pair (q, v), from ``scores`` (queries, videos).

    P are the videos related to q (all of them with the positive-pair mask, else only v). N are the unrelated videos
    with q, and the unrelated queries with v (Miech et al. 2020, equation 1, as used in TVR-Ranking, appendix C.1).

    The public code counts the pair itself twice in the denominator, once by its row and once by its column
    (``pair_once=False``).
    """
    rows, columns = scores[pairs.query], scores.T[pairs.video]
    positive = rows.masked_fill(~known.videos, -torch.inf)
    related = known.queries
    if not pair_once:
        related = related & (torch.arange(len(scores), device=scores.device) != pairs.query[:, None])
    negative = columns.masked_fill(related, -torch.inf)
    return torch.cat([rows, negative], 1).logsumexp(1) - positive.logsumexp(1)


@dataclass(frozen=True, kw_only=True)
class ReLoCLNetConfig(XMLConfig):
    """Settings of ReLoCLNet; the defaults are the paper's."""

    official: ClassVar[Mapping[str, Any]] = {**XMLConfig.official, "weighted": "not-hinge", "pair_once": False}
    hidden: int = 384
    heads: int = 8
    query_layers: int = 2
    max_clips: int = 128
    fit: str = "resample"
    alpha: float = 30.0
    video_weight: float = 0.03
    """Weight of the contrastive loss between queries and videos (VideoCL)."""
    frame_weight: float = 0.03
    """Weight of the contrastive loss between clips in and outside the moment (FrameCL)."""
    pair_once: bool = True
    """Count the pair once in VideoCL's denominator, as MIL-NCE defines it; the public code counts it twice."""


class ReLoCLNet(XML):
    """The model ReLoCLNet: XML with one more layer per modality and two contrastive terms in the loss."""

    config: ReLoCLNetConfig
    clip_layers = 3
    lone_layers = 0
    match_layer = -1
    contrast_layer = 1

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        if self.config.objective == "list":
            return super().loss(batch, epoch, rng)
        pooled = self.pooling(self.word_states(batch.words), batch.words.mask)
        stack = self.clip_stack(batch.clips)
        queries, videos = self._query_parts(pooled), self._clip_parts(stack, batch.clips.mask)
        return (
            self._retrieval_loss(batch, queries, videos, epoch, rng)
            | self._span_loss(batch, queries, videos)
            | self._contrast_loss(batch, pooled, stack)
        )

    def curve(self, queries: Encodings, videos: Encodings) -> Tensor:
        dots = ((videos[m] @ queries[f"{m}_span"][..., None]).squeeze(-1) for m in self.modalities)
        return self._mean([dot * videos[f"{m}_length"] for m, dot in zip(self.modalities, dots, strict=True)])

    def _clip_parts(self, stack: dict[str, list[Tensor]], mask: Tensor) -> Encodings:
        """The unit vectors of clips and their norms; matching and localisation use the same layer."""
        kept: Encodings = {"mask": mask}
        for m, layers in stack.items():
            last = layers[-1]
            kept[m] = self._there(normalize(last, dim=-1), mask)
            kept[f"{m}_length"] = self._there(last.norm(dim=-1, keepdim=True), mask).squeeze(-1)
        return kept

    def _curve_term(self, modality: str) -> tuple[str, str]:
        return modality, f"{modality}_length"

    def _contrast_loss(self, batch: Batch, pooled: Tensor, stack: dict[str, list[Tensor]]) -> dict[str, Tensor]:
        """VideoCL and FrameCL, on the middle layer and without normalisation, as in the authors' code."""
        config, pairs, mask = self.config, batch.pairs, batch.clips.mask
        weight = self._weight(batch)
        known = related_masks(pairs, masked=config.positive_mask)
        moment, seen = inside(pairs.start, pairs.end, mask.shape[1]), mask[pairs.video]
        scores, frames = [], []
        for m, query in zip(self.modalities, pooled.unbind(1), strict=True):
            clips = stack[m][self.contrast_layer]
            scores.append(best_clip(query, clips, mask))
            curve = (clips[pairs.video] @ query[pairs.query][..., None]).squeeze(-1)
            frames.append(frame_contrast(curve, moment, seen))
        video = mil_nce(self._mean(scores), pairs, known, pair_once=config.pair_once)
        return {
            "video_contrast": weighted_mean(video, weight * config.video_weight),
            "frame_contrast": weighted_mean(self._mean(frames), weight * config.frame_weight),
        }


register("reloclnet", ReLoCLNetConfig, ReLoCLNet, "ReLoCLNet: XML with video and frame contrastive learning (2021)")
