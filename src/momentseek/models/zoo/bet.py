"""BET: encodes queries and clips separately, and finds starts and ends by cosine (CroCs, appendix C.2, eq. 13–15).

A transformer encodes the clips. The mean of a query's words passes through one small network for starts and one for
ends. ``p = sigmoid(r cos)`` is the probability that a clip is a start or an end. A span's score is the product of the
two probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import JointClips
from momentseek.models.layers.spans import span_grid
from momentseek.models.model import CorpusModel, ModelConfig, above_nothing, at_least
from momentseek.models.registry import register


def edge_labels(start: Tensor, end: Tensor, clips: int, power: float, printed: bool = False) -> tuple[Tensor, Tensor]:
    """(n, clips) labels of starts and of ends, for true first and last clips (n,).

    >>> s, e = edge_labels(torch.tensor([1]), torch.tensor([2]), 4, 1.0)
    >>> s.tolist(), e.tolist()
    ([[0.0, 1.0, 0.5, 0.0]], [[0.0, 0.5, 1.0, 0.0]])
    """
    at = torch.arange(clips, device=start.device)
    first, last = start[:, None], end[:, None]
    more = 0 if printed else 1
    inside = (at >= first) & (at <= last)
    length = (last - first + 1).float()
    starts = ((last - at + more) / length).clamp(min=0) ** power
    ends = ((at - first + more) / length).clamp(min=0) ** power
    return starts * inside, ends * inside


def edge_loss(logits: tuple[Tensor, Tensor], labels: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
    """(n,): the mean of both edges' binary cross-entropies over the real clips (eq. 11, 12)."""
    each = sum(F.binary_cross_entropy_with_logits(x, y, reduction="none") for x, y in zip(logits, labels, strict=True))
    weight = mask.float()
    return (each * weight).sum(1) / (2 * weight.sum(1))


@dataclass(frozen=True, kw_only=True)
class BetConfig(ModelConfig):
    """BET's and CET's settings."""

    hidden: int = 512
    heads: int = 8
    layers: int = 6
    modalities: str = "video"
    max_clips: int = 64
    longest: int = 64
    alpha: float = 0.0
    sharpness: float = 10.0
    """Factor of the cosines (r)."""
    power: float = 10.0
    """How steeply labels fall off from the edge (k)."""
    printed_labels: bool = False
    """Compute labels exactly as printed in equation 10."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "layers")
        above_nothing(self, "sharpness", "power")


def transformer(config: BetConfig) -> nn.TransformerEncoder:
    """The transformer encoder of BET and CET."""
    layer = nn.TransformerEncoderLayer(
        config.hidden, config.heads, 4 * config.hidden, config.dropout, "gelu", batch_first=True
    )
    return nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)


def mlp(hidden: int, out: int) -> nn.Sequential:
    """A network of three linear layers with ReLU between them."""
    return nn.Sequential(
        nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out)
    )


class ClipTokens(nn.Module):
    """Clips as tokens with learned positions."""

    def __init__(self, config: ModelConfig, dims: Dims) -> None:
        super().__init__()
        self.joint = JointClips(config, dims)
        self.positions = nn.Parameter(0.02 * torch.randn(config.max_clips, config.hidden))

    def forward(self, clips: Clips) -> Tensor:
        """The tokens of the clips, of shape (videos, clips, hidden)."""
        return self.joint(clips) + self.positions[: clips.mask.shape[1]]


class EdgeModel(CorpusModel):
    """The base of BET and CET: two probabilities per clip, the scores of spans by them, and the loss."""

    config: BetConfig

    def edges(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """(n, clips) logits of starts and ends of query i in video i."""
        raise NotImplementedError

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Logarithm of the product of the edges' probabilities."""
        outside = ~videos["mask"]
        start, end = (F.logsigmoid(x).masked_fill(outside, -torch.inf) for x in self.edges(queries, videos))
        return span_grid(start, end, self.config.shortest, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Cross-entropy of both edges and their soft labels (eq. 10–12)."""
        pairs, config = batch.pairs, self.config
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        labels = edge_labels(pairs.start, pairs.end, videos["mask"].shape[1], config.power, config.printed_labels)
        each = edge_loss(self.edges(queries, videos), labels, videos["mask"])
        return {"edges": (each * pairs.weight).sum() / pairs.weight.sum().clamp(min=1e-6)}


class Bet(EdgeModel):
    """BET: a transformer over clips, and cosines of the query with each as starts and ends."""

    retrieves: ClassVar[bool] = True

    def __init__(self, config: BetConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.clips = ClipTokens(config, dims)
        self.context = transformer(config)
        self.words = nn.Linear(dims.query, config.hidden)
        self.start, self.end = mlp(config.hidden, config.hidden), mlp(config.hidden, config.hidden)

    def encode_words(self, words: Words) -> Encodings:
        """The query's vectors for starts and for ends, of length 1."""
        weight = words.mask.float()
        pooled = torch.einsum("qnd,qn->qd", self.words(words.features), weight) / weight.sum(1, keepdim=True)
        return {"start": F.normalize(self.start(pooled), dim=1), "end": F.normalize(self.end(pooled), dim=1)}

    def encode_clips(self, clips: Clips) -> Encodings:
        """The clips in context, of length 1."""
        context = self.context(self.clips(clips), src_key_padding_mask=~clips.mask)
        return {"clips": F.normalize(context, dim=2), "mask": clips.mask}

    def edges(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """Logits of starts and ends: cosines times ``sharpness``."""
        start, end = (torch.einsum("nd,nld->nl", queries[e], videos["clips"]) for e in ("start", "end"))
        return self.config.sharpness * start, self.config.sharpness * end


register("bet", BetConfig, Bet, "BET: bi-encoder transformer with start and end cosines, a baseline of CroCs")
