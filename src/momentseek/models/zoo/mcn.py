"""MCN: encodes a moment by the mean of its clips and the mean of its video (Hendricks et al., ICCV 2017).

The base class of MCN, CAL and the endpoint-only model comes first. A moment's score is minus its squared distance from
the query, and ranks moments of the whole corpus. Query and moments are vectors of length 1. A moment may be one such
vector m, or several (of its clips or modalities); its distance is ``mean |m - q|^2 = 2 - 2 q . mean(m)``, which needs
one inner product per moment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import Dropout, clip_width
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.layers.spans import cell, fits, overlaps, window_squares
from momentseek.models.losses import draw_negatives, hinge, pair_weights, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.models.registry import register

MAX_CLIP_NUMBERS = 1 << 23
"""Maximum number of values of moments' clips in memory (32 MB)."""
UNIT_EPSILON = 1e-5
"""Added to a norm before dividing by it, as in TVR's public code."""


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
    """Number of columns of the LSTM that reads the query; by default ``hidden``."""
    space: int | None = None
    """Number of columns of the joint space of queries and moments; by default ``hidden``."""
    alpha: float = 0.0
    """Weight of a first stage's score; 0 ranks moments of the whole corpus by their distance alone."""
    margin: float = 0.1
    intra_weight: float = 0.5
    """Weight of the loss with another moment of the same video as the negative."""
    inter_weight: float = 0.2
    """Weight of the loss with the same span of another video as the negative."""
    intra_overlap: float = 0.5
    """Moments that overlap the right one by this IoU or more are not used as negatives."""
    weighting: str = "linear"
    """How a pair is weighted by the similarity of query and caption: ``linear``, ``exponential`` or ``none``."""
    positive_mask: bool = True
    """Exclude videos from the negatives that are related to the query in the training set."""


class DistanceModel(CorpusModel):
    """The base class of MCN, CAL and the endpoint-only model; each defines the vectors of its moments.

    The query is the last state of an LSTM over its words, mapped into the moments' space and normalised to length 1.
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

        The values for spans that leave the video are ignored.
        """

    def moment_mlp(self, width: int) -> nn.Sequential:
        """Build the network ``W2 relu(W1 x + b1) + b2`` from a moment's features to the space."""
        return nn.Sequential(nn.Linear(width, self.config.hidden), nn.ReLU(), nn.Linear(self.config.hidden, self.space))

    def encode_words(self, words: Words) -> Encodings:
        _, last = self.words(words.features, words.mask)
        return {"query": normalize(self.query(self.dropout(last)), dim=-1)}

    def distances(self, queries: Encodings, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans): squared distance of spans of video i from query i."""
        return 2 - 2 * torch.einsum("nd,nsd->ns", queries["query"], self.moment_vectors(videos, first, last))

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(queries, videos): the score of each video's best moment for each query."""
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
        # a video that many queries search is computed once
        once = len(mask) > 1 and mask.stride(0) == 0
        shown = {name: part[:1] for name, part in videos.items()} if once else videos
        for length, inside in self._lengths(mask):
            vectors = self._of_length(shown, length).expand(len(mask), -1, -1)
            scores = torch.einsum("nd,nld->nl", query, vectors).mul(2).sub(2)
            columns.append(scores.masked_fill(~inside, -torch.inf))
        return torch.stack(columns, 2)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """``max(0, d(right) - d(wrong) + margin)`` with a wrong moment of the same video, and one of a wrong video.

        The first is any moment that overlaps the right one little enough; the second has the right one's place.
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
        """Each length of spans, with a mask (n, clips) of the clips where such a span may begin."""
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


@dataclass(frozen=True, kw_only=True)
class MCNConfig(DistanceConfig):
    """Settings of MCN, and of CAL."""

    context: bool = True
    """Add the mean of the whole video to a moment's features."""
    moment_endpoints: bool = True
    """Add a moment's endpoints, as shares of the video, to its features: the (TEF) models of TVR, Table 3."""


class MCN(DistanceModel):
    """``m = unit(W2 relu(W1 [unit(mean of its clips); unit(mean of all clips); s/L, e/L] + b1) + b2)``.

    Each modality has such a vector, and all are compared with one query (TVR, section 5.2). The first linear map is
    applied once per clip, because the map of a mean is the mean of the maps.
    """

    config: MCNConfig

    def __init__(self, config: MCNConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = config.modality_names
        self.widths = {name: clip_width(dims, config, name) for name in self.modalities}
        more = 2 * config.moment_endpoints
        self.moment = nn.ModuleDict(
            {name: self.moment_mlp(width * (1 + config.context) + more) for name, width in self.widths.items()}
        )

    def encode_clips(self, clips: Clips) -> Encodings:
        mask = clips.mask
        encoded: Encodings = {"mask": mask}
        for name, width in self.widths.items():
            rows = clips.modality(name) * mask[..., None]
            first = self._layer(name, 0)
            own, whole = first.weight[:, :width], first.weight[:, width : 2 * width]
            constant = first.bias.expand(len(rows), -1)
            if self.config.context:
                constant = constant + unit(rows.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)) @ whole.T
            encoded |= {name: self._own_rows(rows) @ own.T, f"{name}.context": constant}
            encoded |= self._scales(name, rows)
        return encoded

    def moment_vectors(self, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        found = [self.moments_of(name, videos, first, last).mean(2) for name in self.modalities]
        return torch.stack(found).mean(0)

    def moments_of(self, name: str, videos: Encodings, first: Tensor, last: Tensor) -> Tensor:
        """(n, spans, 1, space): the vectors of spans in one modality."""
        rows, there = gather_spans(videos[name], first, last)
        count = there.sum(2).to(rows.dtype)[..., None]
        scale = videos[f"{name}.scale"]
        column = (last - first + 1 - self.config.shortest).clamp(max=scale.shape[2] - 1)
        each = scale[torch.arange(len(scale), device=scale.device)[:, None], first, column][..., None]
        return self._unit_moments(name, videos, (rows.sum(2) / count * each)[:, :, None], first, last)

    def _own_rows(self, rows: Tensor) -> Tensor:
        return rows

    def _scales(self, name: str, rows: Tensor) -> Encodings:
        """(n, L, lengths): the factor that normalises the mean of each span's clips to length 1."""
        c = self.config
        lengths = torch.arange(c.shortest, c.longest + 1, device=rows.device)
        means = window_squares(rows, c.longest)[..., c.shortest - 1 :].clamp(min=0).sqrt() / lengths
        return {f"{name}.scale": 1 / (means + UNIT_EPSILON)}

    def _unit_moments(self, name: str, videos: Encodings, own: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """From ``own`` (n, spans, clips, hidden), the moment's own share of the first layer, to unit vectors."""
        before = own + videos[f"{name}.context"][:, None, None]
        if self.config.moment_endpoints:
            ends = endpoints_of(videos["mask"], first, last, own.dtype) @ self._layer(name, 0).weight[:, -2:].T
            before = before + ends[:, :, None]
        return normalize(self._layer(name, 2)(before.relu()), dim=-1)

    def _layer(self, name: str, place: int) -> nn.Linear:
        stream = self.moment[name]
        assert isinstance(stream, nn.Sequential)
        found = stream[place]
        assert isinstance(found, nn.Linear)
        return found


def unit(x: Tensor) -> Tensor:
    """Normalise rows to length 1; a constant in the divisor keeps rows of zeros finite."""
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return x / (length + UNIT_EPSILON)


def gather_spans(rows: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """(n, L, d) and spans (n, S) -> their rows (n, S, most, d), zero after a span's end, and which rows there are.

    >>> video = torch.tensor([[[1.0], [2.0], [4.0]]])
    >>> rows, there = gather_spans(video, torch.tensor([[0, 2]]), torch.tensor([[1, 2]]))
    >>> rows.squeeze(-1).tolist(), there.tolist()
    ([[[1.0, 2.0], [4.0, 0.0]]], [[[True, True], [True, False]]])
    """
    most = int((last - first).max()) + 1 if first.numel() else 1
    place = first[..., None] + torch.arange(most, device=rows.device)
    there = place <= last[..., None]
    each = torch.arange(len(rows), device=rows.device)[:, None, None]
    found = rows[each, place.clamp(max=rows.shape[1] - 1)]
    return found * there[..., None], there


register("mcn", MCNConfig, MCN, "moment context network: means of moment and video, squared distance", format=2)
