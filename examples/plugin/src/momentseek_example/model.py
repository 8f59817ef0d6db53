"""``span-crf``: every clip gets the odds that it belongs to the moment, and a span the product of its clips' odds.

With independent clips, the probability that exactly the clips s..e answer the query is proportional to
``exp(l_s + … + l_e)``, where ``l_i`` is the logit of clip i. Training maximises it against all other spans of the
video: a conditional random field over one segment, whose sums come from one cumulative sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.spans import cell, fits
from momentseek.models.model import CorpusModel, GroundingConfig, above_nothing
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class SpanCrfConfig(GroundingConfig):
    """Settings of the model, in addition to those that all models have."""

    hidden: int = 64
    longest: int = 64
    kernel: int = 5
    """Clips that a clip's vector is computed from."""
    temperature: float = 0.1
    """Of the softmax over the videos of a batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        above_nothing(self, "kernel", "temperature")


class SpanCrf(CorpusModel):
    """Logits of clips from the product of a query's vector and the clips' vectors."""

    config: SpanCrfConfig

    def __init__(self, config: SpanCrfConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        assert dims.video is not None, "modalities is video, so that momentseek has checked this"
        self.query = nn.Linear(dims.query, config.hidden)
        self.clip = nn.Linear(dims.video, config.hidden)
        self.around = nn.Conv1d(config.hidden, config.hidden, config.kernel, padding="same")
        self.bias = nn.Parameter(torch.zeros(()))

    def encode_words(self, words: Words) -> Encodings:
        mean = (words.features * words.mask[..., None]).sum(1) / words.mask.sum(1, keepdim=True)
        return {"query": self.query(mean)}

    def encode_clips(self, clips: Clips) -> Encodings:
        seen = torch.relu(self.clip(clips.modality("video"))) * clips.mask[..., None]
        return {"mask": clips.mask, "clips": seen + self.around(seen.transpose(1, 2)).transpose(1, 2)}

    def logits(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips): the logit of each clip of video i for query i; 0 where there is no clip."""
        products = torch.einsum("nd,ncd->nc", queries["query"], videos["clips"]) / self.config.hidden**0.5
        return (products + self.bias) * videos["mask"]

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The best clip's product with the query, whatever its video."""
        products = torch.einsum("qd,vcd->qvc", queries["query"], videos["clips"]) / self.config.hidden**0.5
        return products.masked_fill(~videos["mask"], -torch.inf).amax(2)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Logarithms of the probabilities of all spans of a video."""
        sums = nn.functional.pad(self.logits(queries, videos).cumsum(1), (1, self.config.longest))
        first = torch.arange(videos["mask"].shape[1], device=sums.device)[:, None]
        length = torch.arange(self.config.shortest, self.config.longest + 1, device=sums.device)
        scores = sums[:, first + length] - sums[:, first]
        scores = scores.masked_fill(~fits(videos["mask"], self.config.shortest, self.config.longest), -torch.inf)
        return scores.flatten(1).log_softmax(1).view_as(scores)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        queries, videos, pairs = self.encode_words(batch.words), self.encode_clips(batch.clips), batch.pairs
        spans = self.spans(take_rows(queries, pairs.query), take_rows(videos, pairs.video))
        counts = videos["mask"].sum(1)[pairs.video]
        first, length = cell(pairs.start, pairs.end, counts, self.config.shortest, self.config.longest)
        moment = -spans[torch.arange(len(spans), device=spans.device), first, length].mean()
        scores = self.match(queries, videos)[pairs.query] / self.config.temperature
        wrong = pairs.positive[pairs.query].clone()
        wrong[torch.arange(len(wrong), device=wrong.device), pairs.video] = False
        video = nn.functional.cross_entropy(scores.masked_fill(wrong, -torch.inf), pairs.video)
        return {"moment": moment, "video": video}


register("span-crf", SpanCrfConfig, SpanCrf, "the odds of clips, multiplied over a span (example plug-in)")
