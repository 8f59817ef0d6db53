"""TCN-DCM: a map of moments that separates location from content, and averages the location out.

Each candidate is split into a content and a location vector, which are trained to be independent. The query then
attends to the locations of *all* candidates, so that no candidate has an advantage by its location (Yang et al., SIGIR
2021). The map is that of 2D-TAN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import Cells, cells, max_over, overlap, waves
from momentseek.models.layers.projection import Dropout, MapClips
from momentseek.models.losses import draw_negatives, related_masks
from momentseek.models.model import CorpusModel, at_least, one_of
from momentseek.models.registry import register
from momentseek.models.zoo.tan2d import SentenceEncoder, Tan2dConfig, overlap_loss

FLOOR = 1e-9
"""Added under roots and to divisors, so that equal rows have finite gradients."""


def distance_correlation(ones: Tensor, others: Tensor) -> Tensor:
    """Distance correlation of n paired samples (n, d) and (n, e) (Székely et al. 2007; TCN-DCM's loss).

    ``sqrt(mean AB) / sqrt(sqrt(mean AA) sqrt(mean BB))`` with A and B the doubly centred matrices of distances.

    >>> import torch
    >>> x = torch.tensor([[0.0], [1.0], [3.0]])
    >>> round(distance_correlation(x, 2 - 5 * x).item(), 3)
    1.0
    """
    a, b = (_centre(_distances(x)) for x in (ones, others))
    covariance = (a * b).mean().clamp(min=0)  # rounding can leave it just below
    spread = (a.square().mean().add(FLOOR).sqrt() * b.square().mean().add(FLOOR).sqrt()).sqrt()
    return (covariance + FLOOR).sqrt() / (spread + FLOOR)


def _distances(x: Tensor) -> Tensor:
    squares = x.square().sum(1)
    return (squares[:, None] + squares - 2 * x @ x.T).clamp(min=0).add(FLOOR).sqrt()


def _centre(matrix: Tensor) -> Tensor:
    rows = matrix.mean(0)
    return matrix - rows - rows[:, None] + matrix.mean()


@dataclass(frozen=True, kw_only=True)
class TcnDcmConfig(Tan2dConfig):
    """TCN-DCM's settings; the defaults are those for Charades-STA."""

    official: ClassVar[Mapping[str, Any]] = {"fit": "rounded", "correlated": 0}
    dropout: float = 0.1
    """Dropout of the attention's weights."""
    map_layers: int = 3
    heads: int = 4
    deconfound: str = "attend"
    """``attend`` to all locations, ``none`` for a model without them (TCN), or ``blind`` for locations alone."""
    own: float = 1.0
    """Weight of a candidate's own location, added to the attended ones (eta)."""
    other_videos: float = 1.0
    """Weight of the loss on other videos, where all targets are 0 (gamma)."""
    location: float = 1.0
    """Weight of the location vectors' distance from the positions' waves (sigma)."""
    independence: float = 0.001
    """Weight of the distance correlation of content and location (lambda)."""
    size: float = 1e-5
    """Weight of the norms of both vectors, over all candidates."""
    correlated: int = 2048
    """Number of random candidates of a batch for the correlation; 0 for all. The cost grows with its square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "deconfound", "attend", "none", "blind")
        one_of(self, "moments", "pool")
        at_least(self, 0, "own", "other_videos", "location", "independence", "size", "correlated")


def location_waves(candidates: Cells, dim: int) -> Tensor:
    """(cells, dim): waves of the first and the last clip, counted from 1 and scaled to one turn for the whole video."""
    turn = 2 * math.pi / (candidates.clips + 1e-6)  # the small number is the public code's
    half = dim // 2
    places = (candidates.start + 1) * turn, (candidates.end + 1) * turn
    return torch.cat([waves(places[0], half), waves(places[1], dim - half)], dim=1)


class LocationAttention(nn.Module):
    """Attention of each candidate to the locations of all candidates, plus a share of its own location."""

    def __init__(self, hidden: int, heads: int, dropout: float, own: float) -> None:
        super().__init__()
        self.heads, self.own = heads, own
        self.asked = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.value = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)

    def forward(self, asking: Tensor, location: Tensor) -> Tensor:
        """(n, cells, hidden) twice: ``relu(sum_j softmax_j(q_i k_j / sqrt(d)) v_j + own v_i)``, by heads."""
        value = F.relu(self.value(location))
        query, key, parts = (self._split(x) for x in (self.asked(asking), self.key(location), value))
        weights = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1)
        attended = (self.dropout(weights) @ parts).transpose(1, 2).flatten(2)
        return F.relu(attended + self.own * value)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class TcnDcm(CorpusModel):
    """TCN-DCM: content, location and query on a map of moments."""

    retrieves: ClassVar[bool] = False
    config: TcnDcmConfig

    def __init__(self, config: TcnDcmConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden, attends = config.hidden, config.deconfound == "attend"
        self.cells = cells(config.max_clips)
        self.sentence = SentenceEncoder(dims.query, hidden, config.text_layers)
        self.clips = MapClips(config, dims, config.stride) if config.deconfound != "blind" else None
        self.content = nn.Linear(hidden, hidden)
        self.location = nn.Linear(hidden, hidden) if attends else None
        self.query_in = nn.Linear(hidden, hidden) if attends else None
        self.content_in = nn.Linear(hidden, hidden) if attends else None
        self.attention = LocationAttention(hidden, config.heads, config.dropout, config.own) if attends else None
        self.fuse = nn.Linear(hidden, hidden)
        self.layers = nn.ModuleList(
            nn.Conv2d(hidden, hidden, config.kernel, padding=config.kernel // 2) for _ in range(config.map_layers)
        )
        self.skip = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.where = nn.Buffer(location_waves(self.cells, hidden), persistent=False)
        self.inside = nn.Buffer(self.cells.mask()[None, None].float(), persistent=False)

    @property
    def pair_numbers(self) -> int:
        """Number of values of the map and its attention, per clip."""
        config = self.config
        attention = config.heads * len(self.cells) ** 2 // config.max_clips
        return 3 * config.hidden * config.max_clips + attention

    def encode_words(self, words: Words) -> Encodings:
        return {"query": self.sentence(words)[0]}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Encode the clips; a blind model ignores their content."""
        if self.clips is None:
            mask = clips.mask[:, :: self.config.stride]
            return {"clips": mask[..., None].to(self.where), "mask": mask}
        return {"clips": self.clips(clips), "mask": self.clips.mask(clips)}

    def candidates(self, clips: Tensor) -> Tensor:
        """(videos, cells, hidden): the map before it is split."""
        return self.where.expand(len(clips), -1, -1) if self.clips is None else max_over(clips, self.cells)

    def split(self, candidates: Tensor) -> tuple[Tensor, Tensor | None]:
        """Content and location of each candidate, (videos, cells, hidden) each; no location without deconfounding."""
        return self.content(candidates), None if self.location is None else torch.tanh(self.location(candidates))

    def locate(self, query: Tensor, content: Tensor, location: Tensor) -> Tensor:
        """(n, cells, hidden): each candidate's attention to all locations, by the query and its own content."""
        assert self.attention is not None
        assert self.query_in is not None
        assert self.content_in is not None
        asking = self.query_in(F.relu(query))[:, None] + self.content_in(F.relu(content))
        return self.attention(asking, location)

    def logits(self, query: Tensor, content: Tensor, location: Tensor | None) -> Tensor:
        """(n, cells): the logits of the scores for query i and the candidates of video i."""
        moments = content
        if location is not None:
            moments = content + self.locate(query, content, location)
        fused = F.normalize(self.fuse(query)[:, None] * moments, dim=2)
        maps = self.cells.as_map(fused)
        for layer in self.layers:
            maps = F.relu(layer(maps)) * self.inside
        return self.score(self.cells.of_map(maps) + F.relu(self.skip(fused)))[..., 0]

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(n, clips, lengths): the logarithm of each candidate's score."""
        content, location = self.split(self.candidates(videos["clips"]))
        scores = F.logsigmoid(self.logits(queries["query"], content, location))
        return self.cells.as_spans(scores, self.config.longest)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The overlaps, targets of 0 in other videos, and the separation of content and location."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "the map's targets are overlaps in time"
        query = self.encode_words(batch.words)["query"][pairs.query]
        content, location = self.split(self.candidates(self.encode_clips(batch.clips)["clips"]))

        def logits(video: Tensor) -> Tensor:
            return self.logits(query, content[video], None if location is None else location[video])

        iou = overlap(self.cells, pairs.times)
        terms = {"overlap": overlap_loss(logits(pairs.video), iou, pairs.weight, config)}
        wrong = ~related_masks(pairs).videos
        other, found = draw_negatives(wrong, wrong, None, rng)
        if config.other_videos and bool(found.any()):
            weight = pairs.weight * found
            terms["other"] = config.other_videos * overlap_loss(logits(other), torch.zeros_like(iou), weight, config)
        if location is not None:
            terms |= self.apart(content, location, rng)
        return terms

    def apart(self, content: Tensor, location: Tensor, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms that make location vectors encode the position, and content vectors independent of it."""
        config = self.config
        flat = content.flatten(0, 1), location.flatten(0, 1)
        chosen = torch.arange(len(flat[0]))
        if 0 < config.correlated < len(chosen):
            chosen = torch.randperm(len(chosen), generator=rng)[: config.correlated]
        some = [part[chosen.to(part.device)] for part in flat]
        return {
            "location": config.location * F.pairwise_distance(location, self.where).mean(),
            "independence": config.independence * distance_correlation(some[0], some[1]),
            "size": config.size * (flat[0].norm() + flat[1].norm()),
        }


register("tcn_dcm", TcnDcmConfig, TcnDcm, "TCN-DCM: a map of moments whose location is averaged out by attention")
