"""SCDM: a one-shot detector over time, in which the query sets scale and shift of every normalisation.

Temporal convolutions over the clips give maps of fewer and fewer cells. Each cell has four anchors with an overlap and
two corrections. Before each convolution, the features are normalised over time and modulated by the words that each
step attends to (Yuan et al., NeurIPS 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import overlap_of_moments
from momentseek.models.layers.projection import Dropout, JointClips
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.model import CorpusModel, GroundingConfig, Predicted, at_least, one_of
from momentseek.models.registry import register

ANCHORS = (0.25, 0.5, 0.75, 1.0)
"""Widths of the anchors of a cell, as shares of the cell."""
CORRECTION = 0.1
"""Factor of the corrections of an anchor's centre and width, as a share of its width."""
FLAT = 1e-6
"""Added to variances."""


@dataclass(frozen=True, kw_only=True)
class ScdmConfig(GroundingConfig):
    """SCDM's settings; the defaults are those for Charades-STA, with clips of a second."""

    hidden: int = 512
    max_clips: int = 64
    dropout: float = 0.2
    """Dropout of the words' states."""
    max_words: int = 15
    head: int = 64
    """Number of columns between a map and its overlaps and corrections."""
    kernel: int = 3
    """Kernel size of the first two convolutions; the others have 3."""
    maps: int | None = None
    """Number of maps of cells; by default, until one cell is left."""
    modulation: str = "words"
    """How the query modulates features: by its ``words`` at each step, as one ``sentence``, or not (``none``)."""
    sentence_blocks: int = 0
    """Number of first blocks that use the whole sentence instead of words, to save memory (2 for long videos)."""
    right: float = 0.5
    """Anchors whose IoU with the moment is above this are positives."""
    wrong: float = 0.3
    """Anchors whose IoU with the moment is below this are negatives."""
    hard_logit: float = 2.0
    """Negative anchors whose logit is above this are hard negatives, a separate group of the loss."""
    centre: float = 50.0
    width: float = 20.0
    """Weights of the corrections' errors, in clips."""
    least: float = 1.0
    """Minimum length of predicted moments, in clips."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "modulation", "words", "sentence", "none")
        at_least(self, 1, "head", "kernel")
        at_least(self, 0, "sentence_blocks", "centre", "width", "least")
        if self.max_clips < 4 or self.kernel % 2 == 0:
            raise MomentseekError("model: SCDM halves its clips twice; max_clips must be at least 4, and kernel odd")
        if self.maps is not None and not 1 <= self.maps <= len(map_sizes(self.max_clips)):
            most = len(map_sizes(self.max_clips))
            raise MomentseekError(f"model: maps must be from 1 to {most} for {self.max_clips} clips, not {self.maps}")


def map_sizes(clips: int, most: int | None = None) -> list[int]:
    """Number of cells of the maps; each map has half as many cells as the previous one.

    >>> map_sizes(64), map_sizes(1024, 7)
    ([16, 8, 4, 2, 1], [256, 128, 64, 32, 16, 8, 4])
    """
    sizes = []
    size = -(-clips // 2)
    while size > 1:
        size = -(-size // 2)
        sizes.append(size)
    return sizes[:most]


def anchors_of(clips: int, sizes: list[int]) -> Tensor:
    """(anchors, 2): centre and width, in clips, of four anchors per cell, map by map."""
    found = [((j + 0.5) * clips / m, r * clips / m) for m in sizes for j in range(m) for r in ANCHORS]
    return torch.tensor(found)


def norm_over_time(x: Tensor, mask: Tensor) -> Tensor:
    """Normalise (n, L, d) over the real steps, separately for each sample and column; zero in the padding."""
    there = mask[..., None].to(x)
    count = there.sum(1, keepdim=True).clamp(min=1)
    mean = (x * there).sum(1, keepdim=True) / count
    variance = ((x - mean).square() * there).sum(1, keepdim=True) / count
    return (x - mean) / (variance + FLAT).sqrt() * there


class Modulation(nn.Module):
    """Normalisation over time with scale and shift computed from the words that each step attends to."""

    def __init__(self, hidden: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        if kind == "words":
            width = max(1, hidden // 2)  # 256 of 512, as in the public code
            self.word, self.step = nn.Linear(hidden, width), nn.Linear(hidden, width, bias=False)
            self.score = nn.Linear(width, 1, bias=False)
        if kind != "none":
            self.scale, self.shift = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor, words: Tensor, there: Tensor, sentence: Tensor) -> Tensor:
        """(n, L, d), its mask, words (n, N, d) with theirs and the sentence (n, d) -> (n, L, d)."""
        normal = norm_over_time(x, mask)
        if self.kind == "none":
            return normal
        if self.kind == "words":
            scores = self.score(torch.tanh(self.word(words)[:, None] + self.step(x)[:, :, None]))[..., 0]
            weight = scores.masked_fill(~there[:, None], -torch.inf).softmax(2)
            attended = weight @ words
        else:
            attended = sentence[:, None]
        modulated: Tensor = torch.tanh(self.scale(attended)) * normal + torch.tanh(self.shift(attended))
        return modulated * mask[..., None]


class MapHead(nn.Module):
    """Overlaps of a map's anchors, or their corrections."""

    def __init__(self, hidden: int, between: int, out: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm1d(hidden), nn.ReLU(), nn.Conv1d(hidden, between, 3, padding=1))
        self.second = nn.Sequential(nn.BatchNorm1d(between), nn.ReLU(), nn.Conv1d(between, out, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        """(n, hidden, cells) -> (n, cells, out)."""
        found: Tensor = self.second(self.first(x))
        return found.transpose(1, 2)


class Scdm(CorpusModel):
    """SCDM: maps of anchors over temporal convolutions that the query modulates."""

    retrieves: ClassVar[bool] = False
    config: ScdmConfig

    def __init__(self, config: ScdmConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden = config.hidden
        self.sizes = map_sizes(config.max_clips, config.maps)
        self.words = Recurrent(dims.query, hidden)
        self.dropout = Dropout(config.dropout)
        self.clips = JointClips(config, dims)
        self.sentence_in = nn.Linear(hidden, hidden, bias=False)
        self.begin = nn.Conv1d(hidden, hidden, config.kernel, padding=config.kernel // 2)
        count = 1 + len(self.sizes)
        kinds = [
            "sentence" if config.modulation == "words" and i < config.sentence_blocks else config.modulation
            for i in range(count)
        ]
        self.modulate = nn.ModuleList(Modulation(hidden, kind) for kind in kinds)
        kernels = [config.kernel] + [3] * len(self.sizes)
        self.convolve = nn.ModuleList(
            nn.Conv1d(hidden, hidden, k, 1 if i == 0 else 2, padding=k // 2) for i, k in enumerate(kernels)
        )
        self.overlaps = nn.ModuleList(MapHead(hidden, config.head, len(ANCHORS)) for _ in self.sizes)
        self.corrections = nn.ModuleList(MapHead(hidden, config.head, 2 * len(ANCHORS)) for _ in self.sizes)
        self.anchors = nn.Buffer(anchors_of(config.max_clips, self.sizes), persistent=False)

    @property
    def pair_numbers(self) -> int:
        return (6 + self.config.max_words) * self.config.hidden

    def encode_words(self, words: Words) -> Encodings:
        """The states of the words, and their mean."""
        states = self.dropout(self.words(words.features, words.mask)[0]) * words.mask[..., None]
        mean = states.sum(1) / words.mask.sum(1, keepdim=True).clamp(min=1)
        return {"words": states, "words_mask": words.mask, "sentence": mean}

    def encode_clips(self, clips: Clips) -> Encodings:
        return {"clips": self.clips(clips) * clips.mask[..., None], "mask": clips.mask}

    def detect(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """Logits of overlap (n, anchors), and corrections (n, anchors, 2) of centre and width."""
        short = self.config.max_clips - videos["mask"].shape[1]
        mask = F.pad(videos["mask"], (0, short))
        x = F.pad(videos["clips"], (0, 0, 0, short)) + self.sentence_in(queries["sentence"])[:, None]
        x = self._convolve(self.begin, F.relu(x) * mask[..., None]) * mask[..., None]
        asked = queries["words"], queries["words_mask"], queries["sentence"]
        logits, moved = [], []
        for i, (modulate, convolve) in enumerate(zip(self.modulate, self.convolve, strict=True)):
            x = self._convolve(convolve, F.relu(modulate(x, mask, *asked)))
            mask = mask if i == 0 else mask[:, ::2]
            x = x * mask[..., None]
            if i == 0:
                x = F.max_pool1d(x.transpose(1, 2), 2, ceil_mode=True).transpose(1, 2)
                mask = mask[:, ::2]
                continue
            part = x.transpose(1, 2)
            logits.append(self.overlaps[i - 1](part).flatten(1))
            moved.append(torch.tanh(self.corrections[i - 1](part)).reshape(len(x), -1, 2))
        return torch.cat(logits, 1), torch.cat(moved, 1)

    def _convolve(self, layer: nn.Module, x: Tensor) -> Tensor:
        found: Tensor = layer(x.transpose(1, 2))
        return found.transpose(1, 2)

    def decode(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Centres and widths, in clips, of corrected anchors."""
        centre, width = self.anchors.unbind(1)
        return centre + CORRECTION * width * moved[..., 0], width * torch.exp(CORRECTION * moved[..., 1])

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The corrected anchors that begin in the video, scored by the logarithm of their overlap."""
        logits, moved = self.detect(queries, videos)
        centre, width = self.decode(moved)
        count = videos["mask"].sum(1, keepdim=True)
        start, end = (centre - width / 2).clamp(min=0), torch.minimum(centre + width / 2, count)
        gone = (end - start < torch.minimum(count, torch.full_like(centre, self.config.least))) | (width > count)
        best = logits.masked_fill(gone, -torch.inf).amax(1, keepdim=True)
        whole = torch.where(best > -torch.inf, -torch.inf, 0.0).to(logits)  # so every video has a moment
        score = torch.cat([F.logsigmoid(logits).masked_fill(gone, -torch.inf), whole], 1)
        return (
            torch.cat([start / count, torch.zeros_like(whole)], 1),
            torch.cat([end / count, torch.ones_like(whole)], 1),
            score,
        )

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The overlaps of positive, hard and easy negative anchors, and the corrections of positives, for each map."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "anchors are chosen by their overlaps in time"
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        logits, moved = self.detect(take_rows(self.encode_words(batch.words), pairs.query), videos)
        count = videos["mask"].sum(1, keepdim=True)
        truth = pairs.times * count
        middle, size = self.anchors.unbind(1)
        edge = torch.stack([middle - size / 2, middle + size / 2], 1)
        iou = overlap_of_moments(truth, edge)
        there = edge[:, 0] < count
        right, wrong = (iou > config.right) & there, (iou < config.wrong) & there
        hard = wrong & (logits.detach() > config.hard_logit)
        error = F.binary_cross_entropy_with_logits(logits, iou, reduction="none")
        centre, width = self.decode(moved)
        off = (
            F.smooth_l1_loss(centre, truth.mean(1, keepdim=True).expand_as(centre), reduction="none"),
            F.smooth_l1_loss(width, (truth[:, 1:] - truth[:, :1]).expand_as(width), reduction="none"),
        )
        groups = {
            "right": (100.0, error, right),
            "hard": (50.0, error, hard),
            "easy": (50.0, error, wrong & ~hard),
            "centre": (config.centre, off[0], right),
            "width": (config.width, off[1], right),
        }
        ends = torch.tensor([len(ANCHORS) * m for m in self.sizes]).cumsum(0).tolist()
        begins = [0, *ends[:-1]]
        terms = {}
        for name, (weight, values, chosen) in groups.items():
            parts = [
                (values[:, a:b] * chosen[:, a:b]).sum() / chosen[:, a:b].sum().clamp(min=1)
                for a, b in zip(begins, ends, strict=True)
            ]
            terms[name] = weight * torch.stack(parts).sum()
        return terms


register(
    "scdm", ScdmConfig, Scdm, "SCDM: anchors over temporal convolutions that the query modulates step by step", format=2
)
