"""Slate: one vector per clip, spans as one inner product, trained on whole lists of moments.

It is made for ranked moments (TVR-Ranking): scores are comparable across videos, and the loss uses the order of lists.

A clip's vector depends on a neighbourhood of fixed width and not on its position, so videos may have any length and can
be encoded in parts:

.. math:: h_t = LN(W_v v_t) + LN(W_s s_t) + W_g \\,\\mathrm{mean}_{|u-t| \\le 32}(v_u, s_u), \\qquad
          h \\leftarrow h + W_2 \\,\\mathrm{relu}(W_1 LN(\\mathrm{conv}_7(h)))\\text{ twice}, \\qquad
          x_t = h_t / |h_t|

Three attention poolings encode a query as vectors for what, start and end; it also gives a score for each length. The
score of a span s..e of n clips is

.. math:: z(s, e) = q_{in} \\cdot \\mathrm{mean}(x_s .. x_e) + q_{st} \\cdot (x_s - x_{s-1}) +
          q_{ed} \\cdot (x_e - x_{e+1}) + \\lambda_n

where clips outside the video are 0. Three curves and a running sum give all spans. As :math:`|x_t| = 1`,

.. math:: z(s, e) \\le \\max_t q_{in} \\cdot x_t + 2 (|q_{st}| + |q_{ed}|) + \\max_n \\lambda_n

so a search by best clip can stop once this bound is below the score of the last wanted moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.attention import Stack, best_clip
from momentseek.models.layers.projection import Projection, clip_width, initialise
from momentseek.models.layers.spans import fits
from momentseek.models.listwise import ListSettings, SpanSample, list_terms, sample_spans, span_divergence
from momentseek.models.losses import ranking_hinge, related_masks, weighted_mean
from momentseek.models.model import CorpusModel, ModelConfig, at_least, one_of
from momentseek.models.registry import register

POOLINGS = ("clips", "start", "end")
"""What the query is pooled for: the clips inside, the rise at the start, and the fall at the end."""
FIRST_LENGTHS = (8.0, 2.0, 2.0)
"""Lengths of a query's vectors before training: scores must differ by several units among thousands of spans."""


@dataclass(frozen=True, kw_only=True)
class SlateConfig(ModelConfig, ListSettings):
    """Settings of Slate."""

    heads: int = 4
    space: int = 0
    """Number of columns of a clip's vector; 0 for ``hidden``."""
    blocks: int = 2
    """Number of convolutional blocks over the clips."""
    kernel: int = 7
    context: int = 32
    """Number of clips on either side whose mean is part of every clip's input; 0 for none."""
    edges: bool = True
    """Score the rise at the start and the fall at the end."""
    lengths: str = "query"
    """What scores a span's length: the ``query``, a ``prior`` that is the same for all queries, or ``none``."""
    encoder: str = "context"
    """``context``, or ``linear``: only one linear map for clips and one for the mean of the words."""
    objective: str = "list"
    """``list``, or ``hinge`` for XML's losses, which need span probabilities within a video (``per_video``)."""
    per_video: bool = False
    """Normalise the spans' scores within their video by a softmax, and add the score of its best clip."""
    margin: float = 0.1
    """Margin of the hinge, on cosines."""
    alpha: float = 0.0
    videos: int = 300
    max_clips: int = 4096
    dropout: float = 0.0

    def __post_init__(self) -> None:
        ModelConfig.__post_init__(self)
        self.check()
        at_least(self, 0, "space", "blocks", "context")
        one_of(self, "lengths", "query", "prior", "none")
        one_of(self, "encoder", "context", "linear")
        one_of(self, "objective", "list", "hinge")
        if self.objective == "hinge" and not (self.per_video and self.alpha):
            raise MomentseekError("model: objective hinge trains probabilities of a video; set per_video and alpha")


class ClipBlock(nn.Module):
    """``h + W_2 relu(W_1 LN(conv(h)))``: each column over ``kernel`` clips, then columns mixed."""

    def __init__(self, hidden: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(hidden, hidden, kernel, padding=kernel // 2, groups=hidden)
        self.norm = nn.LayerNorm(hidden)
        self.wide = nn.Linear(hidden, 2 * hidden)
        self.back = nn.Linear(2 * hidden, hidden)

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        there = h.masked_fill(~mask[..., None], 0.0)
        mixed = self.norm(self.conv(there.transpose(1, 2)).transpose(1, 2))
        return h + self.back(self.wide(mixed).relu())


def windowed_mean(x: Tensor, mask: Tensor, reach: int) -> Tensor:
    """(n, clips, columns): for each clip, the mean of the clips at most ``reach`` places from it, without padding.

    >>> windowed_mean(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[True, True, False]]), 1).flatten().tolist()
    [2.0, 2.0, 3.0]
    """
    there = mask[..., None].to(x.dtype)
    sums = pad((x * there).cumsum(1), (0, 0, 1, 0))
    counts = pad(there.cumsum(1), (0, 0, 1, 0))
    place = torch.arange(x.shape[1], device=x.device)
    first, last = (place - reach).clamp(min=0), (place + reach + 1).clamp(max=x.shape[1])
    return (sums[:, last] - sums[:, first]) / (counts[:, last] - counts[:, first]).clamp(min=1)


class Slate(CorpusModel):
    """Moments of all videos in one order: clips are encoded before queries are known, a span costs three products."""

    config: SlateConfig

    def __init__(self, config: SlateConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = config.modality_names
        hidden, space = config.hidden, config.space or config.hidden
        widths = {m: clip_width(dims, config, m) for m in self.modalities}
        linear = config.encoder == "linear"
        self.clip_inputs = nn.ModuleDict({m: nn.Linear(width, hidden) for m, width in widths.items()})
        self.clip_norms = nn.ModuleDict({m: nn.Identity() if linear else nn.LayerNorm(hidden) for m in self.modalities})
        reaches = config.context and not linear
        self.around = nn.Linear(sum(widths.values()), hidden, bias=False) if reaches else None
        self.blocks = nn.ModuleList(ClipBlock(hidden, config.kernel) for _ in range(0 if linear else config.blocks))
        self.clip_output = nn.Linear(hidden, space)
        self.word_input = nn.Linear(dims.query, hidden) if linear else Projection(dims.query, hidden, config.dropout)
        self.word_encoder = None if linear else Stack(1, "transformer", hidden, config.heads, config.dropout)
        self.attend = nn.Linear(hidden, len(POOLINGS))
        self.poolings = nn.ModuleList(nn.Linear(hidden, space) for _ in POOLINGS)
        self.length_scores = nn.Linear(hidden, config.longest - config.shortest + 1)
        initialise(self)
        self.scale = nn.Parameter(torch.tensor(FIRST_LENGTHS))

    @property
    def listed_negatives(self) -> int:
        return int(self.mined_videos > 0)

    @property
    def mined_videos(self) -> int:
        return self.config.mined

    def attention(self, words: Words) -> dict[str, Tensor]:
        """(queries, words) for each pooling: the weight of each word."""
        weight = self._attend(self._word_states(words), words.mask)
        return dict(zip(POOLINGS, weight.unbind(1), strict=True))

    def encode_words(self, words: Words) -> Encodings:
        states = self._word_states(words)
        pooled = self._attend(states, words.mask) @ states
        found = {
            name: self.scale[i] * normalize(linear(pooled[:, i]), dim=-1) * float(name == "clips" or self.config.edges)
            for i, (name, linear) in enumerate(zip(POOLINGS, self.poolings, strict=True))
        }
        asked = pooled[:, 0] * float(self.config.lengths == "query")
        return found | {"lengths": self.length_scores(asked) * float(self.config.lengths != "none")}

    def encode_clips(self, clips: Clips) -> Encodings:
        mask, there = clips.mask, clips.mask[..., None]
        features = [clips.modality(m) for m in self.modalities]
        h = torch.zeros((), device=mask.device)
        for m, x in zip(self.modalities, features, strict=True):
            spoken = (x != 0).any(-1, keepdim=True)  # rows of silence are zero
            h = h + self.clip_norms[m](self.clip_inputs[m](x)) * spoken
        if self.around is not None:
            h = h + windowed_mean(self.around(torch.cat(features, -1)), mask, self.config.context)
        for block in self.blocks:
            h = block(h, mask)
        return {"mask": mask, "clips": normalize(self.clip_output(h), dim=-1) * there}

    @property
    def best_clip_parts(self) -> tuple[str, ...]:
        return ("clips",)

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        return best_clip(queries["clips"], videos["clips"], videos["mask"])

    def curves(self, queries: Encodings, videos: Encodings) -> Tensor:
        """(3, n, clips): what, start and end of query i in each clip of video i."""
        return torch.stack([(videos["clips"] @ queries[name][..., None]).squeeze(-1) for name in POOLINGS])

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        mask, config = videos["mask"], self.config
        curves = self.curves(queries, videos)
        grid = span_scores(curves, queries["lengths"], config.shortest)
        grid = grid.masked_fill(~fits(mask, config.shortest, config.longest), -torch.inf)
        if not config.per_video:
            return grid
        best = curves[0].masked_fill(~mask, -torch.inf).amax(1) * (config.objective == "list")
        return grid + (best - grid.flatten(1).logsumexp(1))[:, None, None]

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        config, pairs = self.config, batch.pairs
        queries, videos = self.encode_words(batch.words), self.encode_clips(batch.clips)
        match = self.match(queries, videos)
        spans = sample_spans(pairs, batch.clips.mask, config.shortest, config.longest, rng)
        chosen = spans.compared
        grid = self.spans(take_rows(queries, pairs.query[chosen]), take_rows(videos, pairs.video[chosen]))
        divergence = span_divergence(grid, pairs.start[chosen], pairs.end[chosen], config.shortest)
        if config.objective == "hinge":
            cosine, known = match / self.scale[0].abs(), related_masks(pairs)
            wrong = ranking_hinge(cosine, pairs, known, config.margin, None, rng)
            wrong_video = weighted_mean(wrong[0] + wrong[1], pairs.weight)
            return {"hinge": wrong_video, "span": config.list_span_weight * (divergence * pairs.weight[chosen]).mean()}
        asked = torch.cat([queries[name] for name in POOLINGS], 1)
        scores = asked @ span_vectors(videos["clips"], spans).T
        scores = scores + queries["lengths"][:, (spans.last - spans.first + 1 - config.shortest).clamp(min=0)]
        if config.per_video:
            scores = scores - spans.video_sums(scores, len(match)) + match[:, spans.video]
        return list_terms(config, spans, scores, divergence, match, epoch)

    def _word_states(self, words: Words) -> Tensor:
        states: Tensor = self.word_input(words.features)
        return states if self.word_encoder is None else self.word_encoder(states, words.mask)[-1]

    def _attend(self, states: Tensor, mask: Tensor) -> Tensor:
        """(queries, poolings, words)."""
        weight: Tensor = self.attend(states) * float(self.config.encoder != "linear")
        return weight.masked_fill(~mask[..., None], -torch.inf).softmax(1).transpose(1, 2)


def span_scores(curves: Tensor, lengths: Tensor, shortest: int) -> Tensor:
    """(3, ..., clips) and (..., lengths) -> (..., clips, lengths): the score z of every span, by first clip and length.

    Spans past the last clip are scored as if zeros followed; callers mask them.

    >>> flat = torch.tensor([1.0, 3.0, 2.0])
    >>> span_scores(torch.stack([flat, flat * 0, flat * 0]), torch.zeros(2), 1).tolist()
    [[1.0, 2.0], [3.0, 2.5], [2.0, 1.0]]
    """
    inside, rise, fall = curves
    longest = shortest + lengths.shape[-1] - 1
    size = torch.arange(shortest, longest + 1, device=inside.device)
    sums = pad(inside.cumsum(-1), (1, 0))
    start = rise - pad(rise, (1, 0))[..., :-1]
    end = pad(fall - pad(fall, (0, 1))[..., 1:], (0, longest - 1))
    # views of all windows, [first clip, length]: nothing is gathered; past the last clip sums stay as they are
    after = torch.cat([sums, sums[..., -1:].expand(*sums.shape[:-1], longest - 1)], -1)[..., 1:].unfold(-1, longest, 1)
    mean = (after[..., shortest - 1 :] - sums[..., :-1, None]) / size
    ends = end.unfold(-1, longest, 1)[..., shortest - 1 :]
    return mean + ends + (start[..., None] + lengths[..., None, :])


def span_vectors(clips: Tensor, spans: SpanSample) -> Tensor:
    """(spans, 3 columns): mean, rise and fall of spans of clips (videos, clips, columns), which queries multiply.

    >>> both = SpanSample(None, torch.tensor([0]), torch.tensor([0]), torch.tensor([1]), None, None)
    >>> span_vectors(torch.tensor([[[1.0], [3.0], [7.0]]]), both).tolist()
    [[2.0, 1.0, -4.0]]
    """
    video, first, last = spans.video, spans.first, spans.last
    sums, around = pad(clips.cumsum(1), (0, 0, 1, 0)), pad(clips, (0, 0, 1, 1))
    mean = (sums[video, last + 1] - sums[video, first]) / (last - first + 1)[:, None]
    rise = around[video, first + 1] - around[video, first]
    return torch.cat([mean, rise, around[video, last + 1] - around[video, last + 2]], 1)


register("slate", SlateConfig, Slate, "Slate: one vector per clip, linear spans, trained on whole lists (ours)")
