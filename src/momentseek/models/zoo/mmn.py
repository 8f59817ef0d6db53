"""MMN: encodes moments and queries as vectors in two spaces, so that matrix products match them.

The map of candidates passes through convolutions without the query. Projections map each candidate and each query into
a space for overlap and one for matching. A moment's score is ``((cos_match + 1) / 2)^p · sigmoid(10 cos_overlap)``
(Wang et al. 2022, section 3; docs/models.md says where paper and public code differ). Moment vectors do not depend on
the query, so a corpus is encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, BatchPairs, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.bert import BertTower, load_tower
from momentseek.models.layers.moment_map import MapConvolution, cells, max_over, overlap, overlap_of_moments
from momentseek.models.layers.projection import MapClips
from momentseek.models.layers.recurrent import mean_of_words
from momentseek.models.model import EVERYTHING, CorpusModel, Phase, above_nothing, at_least, one_of
from momentseek.models.registry import register
from momentseek.models.tower_files import NO_TOKEN, find_tower, read_tower_sizes
from momentseek.models.zoo.tan2d import SentenceEncoder, Tan2dConfig, overlap_loss

OVERLAP_SHARPNESS = 10.0
"""Factor of the overlap's cosine before the sigmoid."""
LATE_MATCHING_FACTOR = 0.01
"""Factor of the mutual matching loss's weight after ``only_overlap_after`` epochs."""


def mutual_matching(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, held: Tensor | None = None, *,
    temperature: float = 0.1, margin: float = 0.4, negative_overlap: float = 0.5, query_overlap: float = 0.5,
    positives: int = 1, count_near: bool = False, to_moments: bool = True,
) -> Tensor:  # fmt: skip
    """The mutual matching loss between queries and moments.

    It takes ``queries`` (Q, d), ``moments`` (V, cells, d) and the pairs' overlaps ``iou`` (P, cells). ``negative``
    (Q, V) says which videos are negatives of each query, and ``held``, if different, which queries are negatives of
    each video. The best ``positives`` cells of each pair are positives. With ``count_near``, each cell of the right
    video that overlaps the truth too much to be a negative adds exp(0) to the sum over moments, as in MMN's public
    code. Without ``to_moments``, only the loss from moments to queries is computed (G2L).
    """
    best = iou.topk(positives, dim=1).indices
    found = moments[pairs.video[:, None], best]
    right = (torch.einsum("pd,pkd->pk", queries[pairs.query], found) - margin) / temperature
    to_moment = torch.zeros_like(right)
    if to_moments:
        near = 0.0 if count_near else -torch.inf
        among = _among_moments(queries, moments, pairs, iou, negative, temperature, negative_overlap, near)
        to_moment = right - torch.logaddexp(right, among[:, None])
    others = _among_queries(queries, found, pairs, negative if held is None else held, temperature, query_overlap)
    to_query = right - torch.logaddexp(right, others)
    weight = pairs.weight[:, None].expand_as(right)
    return -((to_moment + to_query) * weight).sum() / weight.sum().clamp(min=1e-6)


def _among_moments(
    queries: Tensor, moments: Tensor, pairs: BatchPairs, iou: Tensor, negative: Tensor, temperature: float, low: float,
    near: float,
) -> Tensor:  # fmt: skip
    """(P,): log of the sum over each pair's negative moments; ``near`` stands for those that overlap the truth."""
    # queries without pairs are only negatives
    asking, place = pairs.query.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    cosine = torch.einsum("qd,vcd->qvc", queries[asking], moments) / temperature
    per_video = cosine.logsumexp(2).masked_fill(~negative[asking], -torch.inf)
    own = cosine[place, pairs.video].masked_fill(iou >= low, near)
    # without any negative the sum is empty; the floor keeps gradients finite and adds nothing
    floor = torch.full_like(own[:, :1], -1e4)
    return torch.cat([per_video[place], own, floor], dim=1).logsumexp(1)


def _among_queries(
    queries: Tensor, found: Tensor, pairs: BatchPairs, negative: Tensor, temperature: float, low: float
) -> Tensor:
    """(P, positives): log of the sum over each moment's negative queries; the pair's own is none of them."""
    assert pairs.times is not None, "whether two moments overlap is told by their times"
    shape = (len(pairs.query), len(queries))
    same = pairs.video[:, None] == pairs.video
    near = same & (overlap_of_moments(pairs.times, pairs.times) >= low)
    shares, clash = (
        torch.zeros(shape, dtype=torch.long, device=same.device).scatter_add(1, pairs.query.expand_as(x), x.long()) > 0
        for x in (same, near)
    )
    allowed = torch.where(shares, ~clash, negative.T[pairs.video])
    allowed[torch.arange(shape[0], device=same.device), pairs.query] = False
    cosine = torch.einsum("pkd,qd->pkq", found, queries) / temperature
    floor = torch.full_like(cosine[..., :1], -1e4)
    return torch.cat([cosine.masked_fill(~allowed[:, None], -torch.inf), floor], dim=2).logsumexp(2)


@dataclass(frozen=True, kw_only=True)
class MmnConfig(Tan2dConfig):
    """MMN's settings; the defaults are those for Charades-STA."""

    alpha: float = 0.0
    videos: int = 100
    stride: int = 2
    space: int = 256
    """Number of columns of the two joint spaces."""
    text: str = "mean"
    """How a query is encoded: ``mean`` over token features (DistilBERT's in the paper), or ``lstm``."""
    tower: str | None = None
    """A language model that reads the queries' texts instead of features, and is fine-tuned: ``distilbert`` (downloaded
    by `momentseek models get`), the folder of a Hugging Face model, or ``auto`` for distilbert if it is downloaded."""
    tower_rate: float = 0.1
    """Factor of the language model's learning rate."""
    tower_after: float = 4.0
    """Number of epochs at the start during which the language model is frozen."""
    norm: bool = True
    """Batch normalisation in the map's convolutions."""
    power: float = 0.5
    """Exponent of the matching score, which multiplies the overlap score."""
    contrast: float = 0.05
    """Weight of the mutual matching loss (lambda)."""
    temperature: float = 0.1
    margin: float = 0.4
    negative_overlap: float = 0.5
    """Candidates of the right video that overlap less than this are negatives."""
    query_overlap: float = 0.5
    """Another query of the video is not a negative if its moment overlaps the right one by this or more."""
    only_overlap_after: float = 0.0
    """After this many whole epochs, the weight of the mutual matching loss is divided by 100 (in the public code, 7 for
    Charades-STA and 6 for ActivityNet Captions); 0 for never."""
    positives: int = 1
    """Number of candidates of the right video, best overlap first, that are positives."""
    follow: str = "paper"
    """``paper``, or ``official``: candidates of the right video that are not negatives add exp(0) to the matching
    loss's sum, as in the public code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "moments", "pool")
        one_of(self, "text", "mean", "lstm")
        one_of(self, "follow", "paper", "official")
        at_least(self, 1, "space", "positives")
        at_least(self, 0, "power", "contrast", "margin", "only_overlap_after", "tower_rate", "tower_after")
        if self.tower and self.text == "lstm":
            raise MomentseekError("model: a language model's states are averaged; set text=mean, or leave out tower")
        above_nothing(self, "temperature")
        if self.positives > (most := len(cells(self.max_clips))):
            raise MomentseekError(
                f"model: positives must be at most {most}, the candidates among {self.max_clips} clips, not "
                f"{self.positives}"
            )


class Mmn(CorpusModel):
    """MMN: candidate moments and queries as vectors of two joint spaces."""

    retrieves: ClassVar[bool] = True
    rate_groups: ClassVar[tuple[str, ...]] = ("tower",)
    tower_layers: ClassVar[int] = 1
    """Number of last layers of the language model that are summed."""
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
        folder = find_tower(config.tower)
        self.tower = BertTower(read_tower_sizes(folder), config.dropout or 0.1) if folder is not None else None
        width = config.hidden if config.text == "lstm" else self.tower.sizes.hidden if self.tower else dims.query
        self.text_norm = nn.LayerNorm(width)
        self.text_match, self.text_overlap = nn.Linear(width, config.space), nn.Linear(width, config.space)
        self.moment_match = nn.Linear(config.hidden, config.space)
        self.moment_overlap = nn.Linear(config.hidden, config.space)

    def encode_words(self, words: Words) -> Encodings:
        """The query in both spaces, of length 1."""
        pooled = self.sentence(words)[0] if self.sentence is not None else mean_of_words(self.read(words))
        pooled = self.text_norm(pooled)
        return {
            "match": F.normalize(self.text_match(pooled), dim=1),
            "overlap": F.normalize(self.text_overlap(pooled), dim=1),
        }

    def read(self, words: Words) -> Words:
        """The words unchanged, or the language model's states of their text; without gradients while it is frozen."""
        if self.tower is None:
            return words
        if words.ids is None:
            raise MomentseekError("the batch has no texts, and the model's language model reads them; give the texts")
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.phase.rate("tower") > 0):
            return Words(self.tower(words.ids, self.tower_layers), words.ids != NO_TOKEN)

    def prepare(self, queries: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Load the weights of the language model."""
        folder = find_tower(self.config.tower)
        if self.tower is not None and folder is not None:
            load_tower(self.tower, folder)

    def phase_at(self, step: int, epoch: int) -> Phase:
        """The language model is frozen at first, and then has its own learning rate."""
        rests = epoch < self.config.tower_after
        return Phase("", {"tower": 0.0 if rests else self.config.tower_rate}) if self.tower is not None else EVERYTHING

    def spaces(self, clips: Clips) -> tuple[Tensor, Tensor, Tensor]:
        """Every candidate moment in both spaces, (videos, cells, space), of any length; and the mask of the clips."""
        moments = max_over(self.clips(clips), self.cells)
        near = self.neighbours.over(self.cells, moments)
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
        """The best candidate's score, from two matrix products of all queries and moments."""
        cosines = (torch.einsum("qd,vcd->qvc", queries[s], videos[s]) for s in ("match", "overlap"))
        return self.log_score(*cosines).amax(2)

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips, lengths): the logarithm of each candidate's score."""
        cosines = (torch.einsum("nd,ncd->nc", queries[s], videos[s]) for s in ("match", "overlap"))
        return self.cells.as_spans(self.log_score(*cosines), self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Overlap by cross-entropy, and mutual matching of moments and queries (eq. 4–6 of CroCs, as in MMN)."""
        return self.terms(batch, self.encode_words(batch.words), self.encode_clips(batch.clips), epoch)

    def terms(self, batch: Batch, words: Encodings, clips: Encodings, epoch: int) -> dict[str, Tensor]:
        """The terms of the loss from encodings, which are computed once per step because of batch normalisation."""
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
        """(queries, videos) twice: negative videos of each query, negative queries of each video; all but its own."""
        own = torch.zeros_like(batch.pairs.positive)
        own[batch.pairs.query, batch.pairs.video] = True
        return ~own, ~own


register("mmn", MmnConfig, Mmn, "MMN: moments and queries in two joint spaces, trained by mutual matching", format=2)
