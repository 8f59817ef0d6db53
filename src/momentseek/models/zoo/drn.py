"""DRN: every position inside a moment predicts the distances to its start and end, and a head grades the result.

Clips, conditioned on the query at three resolutions, form a pyramid. Each position of it has a score and two distances
(Zeng et al., CVPR 2020). Training has three stages: everything but the grading head, that head alone, and everything at
a small rate. ``stage=all`` runs them in turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import JointClips
from momentseek.models.layers.recurrent import Recurrent
from momentseek.models.model import CorpusModel, GroundingConfig, Phase, Predicted, at_least, below_one, one_of
from momentseek.models.registry import register

UNITS = 32
"""Number of units per video in which distances are measured, whatever the number of segments."""
RANGES = ((-1.0, 6.0), (5.6, 11.0), (11.0, math.inf))
"""Ranges of the longer distance, in units, that each level of the pyramid is responsible for."""
FIRST_SCORE = 0.01
"""The initial score of every position, low because most positions are wrong."""
STAGES = ("first", "second", "third")


@dataclass(frozen=True, kw_only=True)
class DrnConfig(GroundingConfig):
    """DRN's settings; the defaults are those for Charades-STA."""

    official: ClassVar[Mapping[str, Any]] = {"good": 0.9, "target": "official"}
    hidden: int = 512
    """Number of columns of the pyramid; its levels are computed from half, equal and twice this number."""
    wide: int = 4096
    """Number of columns of the clips when they are first multiplied by the query."""
    max_clips: int = 32
    stride: int = 4
    """Number of feature rows per segment, which are max-pooled."""
    fit: str = "stretch"
    least: float = 0.05
    """Minimum score of positions that predict a moment; if none reaches it, the whole video is predicted."""
    good: float = 0.9
    """Minimum IoU of results that train the grade (0.9 in the public code, 0.5 in the paper)."""
    target: str = "fixed"
    """Target of the grade: the IoU without gradient (``fixed``), or as in the public code (``official``), where the IoU
    gets a gradient too and only the first position's moment is cut to the video."""
    stage: str = "all"
    """``all`` three, by ``stage_epochs``; or only ``first``, ``second`` or ``third``; the last two need ``begin``."""
    stage_epochs: tuple[int, ...] = (10, 20)
    """Epochs at which the second and the third stage begin."""
    stage_rates: tuple[float, ...] = (0.01, 0.0001)
    """Factors of the learning rate in the second and the third stage."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "wide", "stride")
        one_of(self, "stage", "all", *STAGES)
        one_of(self, "target", "fixed", "official")
        below_one(self, "least", "good")
        one_of(self, "fit", "stretch", "rounded")
        if self.max_clips % 4 or self.hidden % 2:
            raise MomentseekError(
                "model: DRN halves its segments twice; max_clips must be a multiple of 4, hidden even"
            )
        if len(self.stage_epochs) != 2 or not 0 < self.stage_epochs[0] < self.stage_epochs[1]:
            raise MomentseekError(f"model: stage_epochs must be two rising epochs, not {self.stage_epochs!r}")
        if len(self.stage_rates) != 2 or min(self.stage_rates) < 0:
            raise MomentseekError(f"model: stage_rates must be two factors of the rate, not {self.stage_rates!r}")


def convolution_block(before: int, after: int, kernel: int, stride: int = 1, *, bias: bool = False) -> nn.Sequential:
    """A convolution (without bias by default), batch normalisation and ReLU."""
    convolution = nn.Conv1d(before, after, kernel, stride, padding=kernel // 2, bias=False)
    if bias:  # which starts at 0, as in the public code
        convolution.bias = nn.Parameter(torch.zeros(after))
    return nn.Sequential(convolution, nn.BatchNorm1d(after), nn.ReLU())


class LevelQuery(nn.Module):
    """Encodes a query as one vector per level of the pyramid, which multiplies the clips of that level."""

    def __init__(self, dim: int, hidden: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.words = Recurrent(dim, 2 * hidden)
        self.shared = nn.Linear(4 * hidden, hidden)
        self.levels = nn.ModuleList(nn.Linear(hidden, 2 * hidden) for _ in widths)
        self.score = nn.Linear(2 * hidden, 1, bias=False)
        self.out = nn.ModuleList(nn.Linear(2 * hidden, width) for width in widths)

    def forward(self, words: Words) -> list[Tensor]:
        """(queries, width) for each level: words weighed by ``softmax(w (z ∘ h))``, z from the first and last state."""
        states, _ = self.words(words.features, words.mask)
        last = (words.mask.sum(1) - 1).clamp(min=0)
        ends = torch.cat([states[:, 0], states[torch.arange(len(states), device=last.device), last]], 1)
        summary = F.relu(self.shared(ends))
        found = []
        for level, out in zip(self.levels, self.out, strict=True):
            weight = (
                self.score(level(summary)[:, None] * states)[..., 0].masked_fill(~words.mask, -torch.inf).softmax(1)
            )
            found.append(out(torch.einsum("nl,nld->nd", weight, states)))
        return found


class Drn(CorpusModel):
    """DRN: a pyramid of positions, each with a score, two distances and a grade."""

    retrieves: ClassVar[bool] = False
    rate_groups: ClassVar[tuple[str, ...]] = ("grade",)
    config: DrnConfig

    def __init__(self, config: DrnConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        h, half = config.hidden, config.hidden // 2
        self.clips = JointClips(config, dims, config.wide)
        self.query = LevelQuery(dims.query, h, (config.wide, half, h))
        self.place_in = nn.Linear(3, half)
        self.levels = nn.ModuleList(
            [
                convolution_block(config.wide + half, half, 3),
                convolution_block(half, h, 3, 2),
                convolution_block(h, 2 * h, 3, 2),
            ]
        )
        self.lateral = nn.ModuleList(convolution_block(n, h, 1) for n in (half, h, 2 * h))
        self.smooth = nn.ModuleList(convolution_block(h, h, 3) for _ in range(3))
        self.score_tower, self.distance_tower = (convolution_block(h, h, 3, bias=True) for _ in range(2))
        self.score, self.distance = nn.Conv1d(h, 1, 3, padding=1), nn.Conv1d(h, 2, 3, padding=1)
        self.scales = nn.Parameter(torch.ones(3))
        self.grade = nn.Sequential(
            convolution_block(2 * h, h, 1, bias=True), convolution_block(h, half, 3, bias=True), nn.Conv1d(half, 1, 1)
        )
        nn.init.constant_(self.score.bias, math.log(FIRST_SCORE / (1 - FIRST_SCORE)))  # type: ignore[arg-type]
        self.graded = nn.Buffer(torch.zeros(()))  # 1 once the grading head has been trained
        segment = torch.arange(config.max_clips) / config.max_clips
        ends = torch.stack([segment, segment + 1 / config.max_clips, torch.full_like(segment, 1 / config.max_clips)], 1)
        self.places = nn.Buffer(ends, persistent=False)
        steps = [UNITS / config.max_clips * 2**level for level in range(3)]
        points = [(torch.arange(config.max_clips // 2**n) + 0.5) * step for n, step in enumerate(steps)]
        self.points = nn.Buffer(torch.cat(points), persistent=False)
        self.low: Tensor
        self.high: Tensor
        for name, side in (("low", 0), ("high", 1)):
            limits = [torch.full((len(p),), RANGES[n][side]) for n, p in enumerate(points)]
            self.register_buffer(name, torch.cat(limits), persistent=False)

    @property
    def goes_on(self) -> bool:
        return self.config.stage in STAGES[1:]

    @property
    def pair_numbers(self) -> int:
        return 2 * self.config.wide + 16 * self.config.hidden

    def phase_at(self, step: int, epoch: int) -> Phase:
        """The stage of an epoch, with its rates; the first freezes the grading head, the second everything else."""
        config = self.config
        stage = config.stage
        if stage == "all":
            stage = STAGES[sum(epoch >= after for after in config.stage_epochs)]
        second, third = config.stage_rates
        rates = {
            "first": {"grade": 0.0},
            "second": {"": 0.0, "grade": second},
            "third": {"": third, "grade": third},
        }
        return Phase(stage, rates[stage], STAGES.index(stage))

    def encode_words(self, words: Words) -> Encodings:
        return {f"level{i}": q for i, q in enumerate(self.query(words))}

    def encode_clips(self, clips: Clips) -> Encodings:
        """(videos, segments, wide): the maximum over each segment's rows, mapped."""
        stride = self.config.stride
        video, subtitle = (None if x is None else most_of(x, stride) for x in (clips.video, clips.subtitle))
        rows = Clips(video, subtitle, clips.mask[:, ::stride])
        return {"clips": self.clips(rows), "mask": rows.mask}

    def pyramid(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (n, points), distances (n, points, 2) in units, and grades' logits (n, points)."""
        x = (videos["clips"] * queries["level0"][:, None]).transpose(1, 2)
        where = self.place_in(self.places).T.expand(len(x), -1, -1)
        x = self.levels[0](torch.cat([x, where], 1))
        maps = [x]
        for level in (1, 2):
            x = self.levels[level](x * queries[f"level{level}"][..., None])
            maps.append(x)
        down = [lateral(part) for lateral, part in zip(self.lateral, maps, strict=True)]
        for level in (1, 0):
            down[level] = down[level] + F.interpolate(down[level + 1], scale_factor=2.0, mode="nearest")
        found = []
        for level, part in enumerate(down):
            part = self.smooth[level](part)
            one, two = self.score_tower(part), self.distance_tower(part)
            grade = torch.cat([one, two], 1)
            if self.phase.name == STAGES[1]:  # the second stage freezes everything else
                grade = grade.detach()
            distance = torch.exp(self.scales[level] * self.distance(two))
            found.append((self.score(one)[:, 0], distance.transpose(1, 2), self.grade(grade)[:, 0]))
        scores, distances, grades = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        return scores, distances, grades

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The moments of positions with at least the minimum score; with trained grades, ``sqrt(score · grade)``."""
        scores, distances, grades = self.pyramid(queries, videos)
        start, end = (self.points - distances[..., 0]) / UNITS, (self.points + distances[..., 1]) / UNITS
        value = 0.5 * (F.logsigmoid(scores) + self.graded * F.logsigmoid(grades))
        value = value.masked_fill(scores.sigmoid() <= self.config.least, -torch.inf)
        whole = torch.where((value > -torch.inf).any(1, keepdim=True), -torch.inf, 0.0).to(value)
        start = torch.cat([start.clamp(0, 1), torch.zeros_like(whole)], 1)
        end = torch.cat([end.clamp(0, 1), torch.ones_like(whole)], 1)
        return start, end, torch.cat([value, whole], 1)

    def targets(self, times: Tensor) -> tuple[Tensor, Tensor]:
        """(pairs, points, 2): distances of each position from a moment's ends, in units; and the positive positions."""
        ends = times[:, None] * UNITS
        distances = torch.stack([self.points - ends[..., 0], ends[..., 1] - self.points], 2)
        longer = distances.amax(2)
        return distances, (distances.amin(2) > 0) & (longer >= self.low) & (longer <= self.high)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Focal loss of the scores, minus the logarithm of the IoU, and the grades, by stage."""
        pairs, stage = batch.pairs, self.phase.name
        assert pairs.times is not None, "distances are from a moment's ends"
        queries = take_rows(self.encode_words(batch.words), pairs.query)
        scores, distances, grades = self.pyramid(queries, take_rows(self.encode_clips(batch.clips), pairs.video))
        wanted, right = self.targets(pairs.times)
        terms = {}
        if stage != STAGES[1]:
            terms["score"] = focal_loss(scores, right).sum() / (right.sum() + len(right))
            each = point_overlap(distances, wanted).clamp(min=1e-6).log()
            terms["distance"] = -(each * right).sum() / right.sum().clamp(min=1)
        if stage != STAGES[0]:
            self.graded.fill_(1.0)
            reached = self.moment_overlap(distances, pairs.times)
            good = reached > self.config.good  # wherever a position lies, as in the public code
            error = F.smooth_l1_loss(grades.sigmoid(), reached, reduction="none")
            terms["grade"] = (error * good).sum() / good.sum().clamp(min=1)
        return terms

    def moment_overlap(self, distances: Tensor, times: Tensor) -> Tensor:
        """(pairs, points): IoU of what each position predicts and the moment, both as shares of the video.

        1e-6 is added to the divisor, as in the public code; it changes the IoU of a short moment by 1e-5.
        """
        found = torch.stack([self.points - distances[..., 0], self.points + distances[..., 1]], 2) / UNITS
        if self.config.target == "official":
            found = torch.cat([found[:, :1].clamp(0, 1), found[:, 1:]], 1)
        else:
            found = found.detach()
        (start, end), (first, last) = found.unbind(2), times[:, None].unbind(2)
        shared = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
        return shared / ((torch.maximum(end, last) - torch.minimum(start, first)).clamp(min=0) + 1e-6)


def most_of(rows: Tensor, stride: int) -> Tensor:
    """(n, rows, d) → (n, rows / stride, d): the maximum of every ``stride`` rows.

    >>> most_of(torch.tensor([[[1.0], [3.0], [2.0], [0.0]]]), 2).flatten().tolist()
    [3.0, 2.0]
    """
    return rows.reshape(len(rows), -1, stride, rows.shape[2]).amax(2)


def point_overlap(found: Tensor, wanted: Tensor) -> Tensor:
    """IoU of two moments around one point, each given by its distances (…, 2) to start and end, in units.

    1e-8 is added to both parts, as in the public code, so that its logarithm is finite.

    >>> point_overlap(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 3.0])).item()
    0.5
    """
    shared, whole = torch.minimum(found, wanted).sum(-1), torch.maximum(found, wanted).sum(-1)
    return (shared + 1e-8) / (whole + 1e-8)


def focal_loss(logits: Tensor, right: Tensor, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    """Focal loss: ``-a (1 - p)^g log p`` for positives, ``-(1 - a) p^g log(1 - p)`` for negatives (Lin et al. 2017).

    >>> [round(x, 4) for x in focal_loss(torch.zeros(2), torch.tensor([True, False])).tolist()]
    [0.0433, 0.13]
    """
    p = logits.sigmoid()
    one = -alpha * (1 - p) ** gamma * F.logsigmoid(logits)
    return torch.where(right, one, -(1 - alpha) * p**gamma * F.logsigmoid(-logits))


register("drn", DrnConfig, Drn, "DRN: every position of a pyramid regresses the distances to start and end", format=2)
