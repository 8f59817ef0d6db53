"""MMN: moments and queries as vectors of two spaces, so that a query is matched by one matrix product.

The map of candidates runs through convolutions without the query; two projections put each candidate, and two the
query, into a space for overlap and one for matching. A moment's score is ``((cos_match + 1) / 2)^p · sigmoid(10
cos_overlap)`` (Wang et al. 2022, section 3; docs/models.md says where paper and public code differ). Moment vectors do
not depend on the query: a corpus is encoded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words
from momentseek.models.checks import above_nothing, at_least, one_of
from momentseek.models.layers.joint_clips import MapClips
from momentseek.models.layers.sentence import mean_of_words
from momentseek.models.losses.mutual_matching import mutual_matching
from momentseek.models.model import CorpusModel, Dims
from momentseek.models.moment_map import MapConvolution, cells, max_over, overlap
from momentseek.models.registry import register
from momentseek.models.tan2d import SentenceEncoder, Tan2dConfig, overlap_loss

OVERLAP_SHARPNESS = 10.0
"""What the overlap's cosine is multiplied by before the sigmoid."""
LATE_MATCHING_FACTOR = 0.01
"""What is left of the mutual matching loss's weight after ``only_overlap_after`` epochs."""


@dataclass(frozen=True, kw_only=True)
class MmnConfig(Tan2dConfig):
    """MMN's settings; the defaults are those for Charades-STA."""

    alpha: float = 0.0
    videos: int = 100
    stride: int = 2
    space: int = 256
    """Columns of the two joint spaces."""
    text: str = "mean"
    """``mean`` over token features (DistilBERT's in the paper), or ``lstm``."""
    norm: bool = True
    """Batch normalisation in the map's convolutions."""
    power: float = 0.5
    """Exponent of the matching score beside the overlap score."""
    contrast: float = 0.05
    """Weight of the mutual matching loss (lambda)."""
    temperature: float = 0.1
    margin: float = 0.4
    negative_overlap: float = 0.5
    """Candidates of the right video that overlap less than this are negatives."""
    query_overlap: float = 0.5
    """Another query of the video is no negative if its moment overlaps the right one by this or more."""
    only_overlap_after: float = 0.0
    """After so many whole epochs the mutual matching loss counts a hundredth (the public code's 7 for Charades-STA, 6
    for ActivityNet Captions); 0 leaves it as it is."""
    positives: int = 1
    """Candidates of the right video, best overlap first, that count as the moment."""
    follow: str = "paper"
    """``official``: candidates of the right video that are no negatives stay in the matching loss's sum as exp(0), as
    the public code has it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "moments", "pool")
        one_of(self, "text", "mean", "lstm")
        one_of(self, "follow", "paper", "official")
        at_least(self, 1, "space", "positives")
        at_least(self, 0, "power", "contrast", "margin", "only_overlap_after")
        above_nothing(self, "temperature")
        if self.positives > (most := len(cells(self.max_clips))):
            raise MomentseekError(
                f"model: positives must be at most {most}, the candidates among {self.max_clips} clips, not "
                f"{self.positives}"
            )


class Mmn(CorpusModel):
    """MMN: candidate moments and queries as vectors of two joint spaces."""

    retrieves: ClassVar[bool] = True
    config: MmnConfig

    def __init__(self, config: MmnConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.cells = cells(config.max_clips)
        self.clips = MapClips(config, dims, config.stride)
        self.neighbours = MapConvolution(
            self.cells.mask(), config.hidden, config.hidden, config.map_layers, config.kernel, norm=config.norm,
            padding=config.padding,
        )  # fmt: skip
        self.sentence = (
            SentenceEncoder(dims.query, config.hidden, config.text_layers) if config.text == "lstm" else None
        )
        width = config.hidden if config.text == "lstm" else dims.query
        self.text_norm = nn.LayerNorm(width)
        self.text_match, self.text_overlap = nn.Linear(width, config.space), nn.Linear(width, config.space)
        self.moment_match = nn.Linear(config.hidden, config.space)
        self.moment_overlap = nn.Linear(config.hidden, config.space)

    def encode_words(self, words: Words) -> Encodings:
        """The query in both spaces, of length 1."""
        pooled = self.text_norm(self.sentence(words)[0] if self.sentence is not None else mean_of_words(words))
        return {
            "match": F.normalize(self.text_match(pooled), dim=1),
            "overlap": F.normalize(self.text_overlap(pooled), dim=1),
        }

    def spaces(self, clips: Clips) -> tuple[Tensor, Tensor, Tensor]:
        """Every candidate moment in both spaces, (videos, cells, space), of any length; and the mask of the clips."""
        moments = max_over(self.clips(clips), self.cells)
        near = self.cells.of_map(self.neighbours(self.cells.as_map(moments)))
        return self.moment_match(near), self.moment_overlap(near), self.clips.mask(clips)

    def encode_clips(self, clips: Clips) -> Encodings:
        """Every candidate moment in both spaces, of length 1."""
        match, around, mask = self.spaces(clips)
        return {"match": F.normalize(match, dim=2), "overlap": F.normalize(around, dim=2), "mask": mask}

    def log_score(self, match: Tensor, overlap: Tensor) -> Tensor:
        """Logarithm of the score, from the two cosines."""
        base = (0.5 * match + 0.5).clamp(min=1e-6)
        return self.config.power * base.log() + F.logsigmoid(OVERLAP_SHARPNESS * overlap)

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The best candidate's score: all queries against all moments, two matrix products."""
        cosines = (torch.einsum("qd,vcd->qvc", queries[s], videos[s]) for s in ("match", "overlap"))
        return self.log_score(*cosines).amax(2)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """Logarithm of each candidate's score."""
        cosines = (torch.einsum("nd,ncd->nc", queries[s], videos[s]) for s in ("match", "overlap"))
        return self.cells.as_spans(self.log_score(*cosines), self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Overlap by cross-entropy, and mutual matching of moments and queries (eq. 4–6 of CroCs, as in MMN)."""
        return self.terms(batch, self.encode_words(batch.words), self.encode_clips(batch.clips), epoch)

    def terms(self, batch: Batch, words: Encodings, clips: Encodings, epoch: int) -> dict[str, Tensor]:
        """The loss's terms, from what was encoded: once, so that batch normalisation sees a step's videos once."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "the map's targets are overlaps in time"
        iou = overlap(self.cells, pairs.times)
        cosine = torch.einsum("pd,pcd->pc", words["overlap"][pairs.query], clips["overlap"][pairs.video])
        contrast = mutual_matching(
            words["match"], clips["match"], pairs, iou, *self.negatives(batch),
            temperature=config.temperature, margin=config.margin,
            negative_overlap=config.negative_overlap, query_overlap=config.query_overlap, positives=config.positives,
            count_near=config.follow == "official",
        )  # fmt: skip
        return {
            "overlap": overlap_loss(OVERLAP_SHARPNESS * cosine, iou, pairs.weight, config),
            "matching": (LATE_MATCHING_FACTOR if 0 < config.only_overlap_after <= epoch else 1.0)
            * config.contrast
            * contrast,
        }

    def negatives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(queries, videos) twice: videos held against a query, and queries against a video. MMN: all but own."""
        own = torch.zeros_like(batch.pairs.positive)
        own[batch.pairs.query, batch.pairs.video] = True
        return ~own, ~own


register("mmn", MmnConfig, Mmn, "MMN: moments and queries in two joint spaces, trained by mutual matching", format=2)
