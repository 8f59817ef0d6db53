"""Models that score a moment by minus its squared distance from the query, and search a corpus by that alone.

Query and moments are vectors of length 1, so a moment that is one such vector m, or the mean of several (its clips, its
modalities), lies ``mean |m - q|^2 = 2 - 2 q . mean(m)`` away: one inner product for each moment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.models.batch import Batch, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import Dropout
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.layers.spans import cell, fits, overlaps
from momentseek.models.losses import draw_negatives, hinge, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig

MAX_CLIP_NUMBERS = 1 << 23
"""Numbers of moments' clips held at a time: 32 MB."""


@dataclass(frozen=True, kw_only=True)
class DistanceConfig(ModelConfig):
    """Settings of models trained by the ranking loss of MCN (Hendricks et al., ICCV 2017)."""

    official: ClassVar[Mapping[str, Any]] = {
        "intra_weight": 1.0,
        "inter_weight": 0.4,
        "intra_overlap": 0.35,
        "positive_mask": False,
        "weighting": "none",
    }
    dropout: float = 0.0
    """Applied to the query's state; the public code has none."""
    word_hidden: int | None = None
    """Columns of the LSTM that reads the query; nothing takes ``hidden``."""
    space: int | None = None
    """Columns of the space where query and moments meet; nothing takes ``hidden``."""
    alpha: float = 0.0
    """A moment's distance ranks it in the whole corpus; a first stage's score may be added."""
    margin: float = 0.1
    intra_weight: float = 0.5
    """Weight of the loss against another moment of the same video."""
    inter_weight: float = 0.2
    """Weight of the loss against the same place in another video."""
    intra_overlap: float = 0.5
    """Moments that overlap the right one by this IoU or more are not called wrong."""
    weighting: str = "linear"
    """How the similarity of query and caption weighs a pair: ``linear``, ``exponential`` or ``none``."""
    positive_mask: bool = True
    """Use no video as a negative that the training set says is related to the query."""


class DistanceModel(CorpusModel):
    """What MCN, CAL and the endpoint-only model share; each says which vectors its moments are.

    The query is the last state of an LSTM over its words, mapped into the moments' space and of length 1.
    """

    config: DistanceConfig

    def __init__(self, config: DistanceConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        states = config.word_hidden or config.hidden
        self.space = config.space or config.hidden
        self.words = Recurrent(dims.query, states, both_ways=False)
        self.dropout = Dropout(config.dropout)
        self.query = nn.Linear(states, self.space)

    @abstractmethod
    def moment_vectors(self, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans, space): the vectors of spans ``first`` to ``last``, both (n, spans), of video i.

        What is said of spans that leave the video does not matter.
        """

    def moment_mlp(self, width: int) -> nn.Sequential:
        """``W2 relu(W1 x + b1) + b2``: from what is known of a moment into the space."""
        return nn.Sequential(nn.Linear(width, self.config.hidden), nn.ReLU(), nn.Linear(self.config.hidden, self.space))

    def encode_words(self, words: Words) -> Encodings:
        _, last = self.words(words.features, words.mask)
        return {"query": normalize(self.query(self.dropout(last)), dim=-1)}

    def distances(self, queries: Encodings, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans): squared distance of spans of video i from query i."""
        return 2 - 2 * torch.einsum("nd,nsd->ns", queries["query"], self.moment_vectors(videos, first, last))

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The score of the video's best moment."""
        query, mask = queries["query"], videos["mask"]
        best = query.new_full((len(query), len(mask)), -torch.inf)
        for length, inside in self._lengths(mask):
            vectors = self._of_length(videos, length)
            scores = torch.einsum("qd,vld->qvl", query, vectors).mul(2).sub(2).masked_fill(~inside, -torch.inf)
            best = torch.maximum(best, scores.amax(2))
        return best

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        mask, query = videos["mask"], queries["query"]
        columns = []
        # one video that many queries search is not computed for each of them
        once = len(mask) > 1 and mask.stride(0) == 0
        shown = {name: part[:1] for name, part in videos.items()} if once else videos
        for length, inside in self._lengths(mask):
            vectors = self._of_length(shown, length).expand(len(mask), -1, -1)
            scores = torch.einsum("nd,nld->nl", query, vectors).mul(2).sub(2)
            columns.append(scores.masked_fill(~inside, -torch.inf))
        return torch.stack(columns, 2)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """``max(0, d(right) - d(wrong) + margin)`` with a wrong moment of the same video, and one of a wrong video.

        The first is any that overlaps the right one little enough, the second lies where the right one does.
        """
        c, pairs = self.config, batch.pairs
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        videos = self.encode_clips(batch.clips)
        mask = batch.clips.mask
        counts = mask.sum(1)
        own = take_rows(videos, pairs.video)
        right = self._far(queries, own, *cell(pairs.start, pairs.end, counts[pairs.video], c.shortest, c.longest))

        apart = overlaps(pairs.start, pairs.end, mask.shape[1], c.shortest, c.longest) < c.intra_overlap
        allowed = (apart & fits(mask[pairs.video], c.shortest, c.longest)).flatten(1)
        chosen, found = draw_negatives(allowed, allowed, None, rng)
        lengths = c.longest - c.shortest + 1
        intra = self._far(queries, own, chosen // lengths, chosen % lengths)

        wrong = ~related_masks(pairs, masked=c.positive_mask).videos
        video, other = draw_negatives(wrong, wrong, None, rng)
        place = cell(pairs.start, pairs.end, counts[video], c.shortest, c.longest)
        inter = self._far(queries, take_rows(videos, video), *place)
        weight = pair_weights(pairs.weight, c.weighting)
        parts = ((c.intra_weight, intra, found), (c.inter_weight, inter, other))
        values = [w * torch.where(there, hinge(-right, -far, c.margin), 0.0) for w, far, there in parts]
        return {"intra": weighted_mean(values[0], weight), "inter": weighted_mean(values[1], weight)}

    def _far(self, queries: Encodings, videos: Encodings, first: Tensor, column: Tensor) -> Tensor:
        """(n,): distance of one span of each video, given by first clip and column of the grid of spans."""
        last = first + column + self.config.shortest - 1
        return self.distances(queries, videos, first[:, None], last[:, None]).squeeze(1)

    def _lengths(self, mask: Tensor) -> list[tuple[int, Tensor]]:
        """Each length of spans, and (n, clips) where one of it may begin."""
        inside = fits(mask, self.config.shortest, self.config.longest)
        return list(enumerate(inside.unbind(2), self.config.shortest))

    def _of_length(self, videos: Encodings, length: int) -> Tensor:
        """(n, clips, space): the vectors of all spans of a length, by first clip."""
        count, clips = videos["mask"].shape
        first = torch.arange(clips, device=videos["mask"].device)[None]
        step = max(1, MAX_CLIP_NUMBERS // (clips * length * max(self.config.hidden, self.space)))
        parts = []
        for begin in range(0, count, step):
            some = {name: part[begin : begin + step] for name, part in videos.items()}
            here = first.expand(len(some["mask"]), -1)
            parts.append(self.moment_vectors(some, here, here + length - 1))
        return torch.cat(parts) if len(parts) != 1 else parts[0]


def endpoints_of(mask: Tensor, first: Tensor, last: Tensor, dtype: torch.dtype) -> Tensor:
    """(n, spans, 2): where spans begin and end as shares of their video (the temporal endpoint feature, TEF).

    >>> there = torch.tensor([[True, True]])
    >>> endpoints_of(there, torch.tensor([[0, 1]]), torch.tensor([[0, 1]]), torch.float32).tolist()
    [[[0.0, 0.5], [0.5, 1.0]]]
    """
    count = mask.sum(1).clamp(min=1)[:, None]
    return (torch.stack([first, last + 1], dim=2).to(dtype)) / count[..., None]
