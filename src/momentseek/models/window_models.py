"""What CTRL and ACRN share: windows scored together with the query, and how far their ends are from the moment's.

A window is what its clips and those beside it are on average. From window and query together come a score and two
offsets, so that a moment need not begin or end where a window does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from momentseek.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.checks import at_least, one_of
from momentseek.models.layers.joint_clips import JointClips
from momentseek.models.layers.sentence import SENTENCE_ENCODERS, Sentence
from momentseek.models.layers.window_ladder import Windows, beside, window_means, window_overlaps, windows_of
from momentseek.models.losses.alignment import alignment
from momentseek.models.losses.negatives import draw_negatives
from momentseek.models.model import CorpusModel, Dims, ModelConfig, Predicted
from momentseek.models.pairwise import match_by_best_span


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ModelConfig):
    """Settings of models of sliding windows; lengths are in clips, which had 16 frames in the papers."""

    hidden: int = 1024
    max_clips: int = 300
    modalities: str = "video"
    alpha: float = 0.0
    videos: int = 5
    dropout: float = 0.0
    head: int = 1000
    """Columns between window and query together and the three numbers that come out."""
    windows: tuple[int, ...] = (4, 8, 16, 32)
    """Lengths of the windows that are trained (64 to 512 frames)."""
    searched: tuple[int, ...] = ()
    """Lengths of the windows that are searched (128 and 256 frames in the public code); empty: those trained."""
    overlap: float = 0.8
    """The share of a window that the next one of its length covers too."""
    context: int = 8
    """Clips beside a window that are its context (128 frames)."""
    least_overlap: float = 0.5
    """A window is trained for a query if its IoU with the moment is above this …"""
    most_outside: float = 0.15
    """… and less than this share of it lies outside the moment (0.15 in the public code, 0.2 in the paper)."""
    regression: float = 0.16
    """Weight of the offsets' error, which is in clips: 0.01 per frame."""
    sentence: str = "mean"
    """A query is the ``mean`` of its words, or the last state of an ``lstm`` (skip-thought vectors in the papers)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "sentence", *SENTENCE_ENCODERS)
        at_least(self, 1, "head", "context")
        at_least(self, 0, "regression")
        for name in ("windows", "searched"):
            lengths = getattr(self, name)
            if any(type(n) is not int or n < 1 for n in lengths) or (name == "windows" and not lengths):
                raise MomentseekError(f"model: {name} must be whole numbers of clips, such as [4, 8], not {lengths!r}")
        for name in ("overlap", "least_overlap", "most_outside"):
            if not 0 <= getattr(self, name) < 1:
                raise MomentseekError(f"model: {name} must be from 0 to below 1, not {getattr(self, name):g}")


class WindowModel(CorpusModel):
    """Scores and offsets of sliding windows, from what subclasses make of a window and of window and query."""

    retrieves: ClassVar[bool] = False
    config: WindowConfig

    def __init__(self, config: WindowConfig, dims: Dims, columns: int, fused: int) -> None:
        super().__init__(config, dims)
        self.sentence = Sentence(config.sentence, dims.query, config.hidden)
        self.clips = JointClips(config, dims, columns)
        self.head = nn.Sequential(nn.Linear(fused, config.head), nn.ReLU(), nn.Linear(config.head, 3))
        self.fused = fused

    @abstractmethod
    def window_parts(self, clips: Tensor, mask: Tensor, windows: Windows) -> Tensor:
        """(n, windows, …): what is known of each window before the query is."""

    @abstractmethod
    def fuse(self, parts: Tensor, query: Tensor) -> Tensor:
        """(…, fused): window and query together; ``query`` (…, hidden) has the leading axes of ``parts``."""

    @property
    def pair_numbers(self) -> int:
        """Each clip begins a window of every length, at most."""
        return len(self.config.windows) * (2 * self.fused + self.config.head)

    def check_lengths(self, clips: Mapping[str, int]) -> None:
        """Refuse films that are shorter than the shortest window."""
        shortest = min(*self.config.windows, *(self.config.searched or self.config.windows))
        for name, count in clips.items():
            if count < shortest:
                raise MomentseekError(
                    f"video {name} has {count} clips and the shortest window {shortest}; set shorter ones "
                    "(windows=[…]), or leave the video out"
                )

    def encode_words(self, words: Words) -> Encodings:
        return {"query": self.sentence(words)}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Each clip as the windows' means need it: they are linear, so that clips are mapped once."""
        return {"clips": self.clips(clips) * clips.mask[..., None], "mask": clips.mask}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The best window's score, pair by pair; costly, for small sets."""
        return match_by_best_span(self, queries, videos)

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """Every window, its ends moved by the offsets; the score is the logarithm of a probability."""
        clips, mask = videos["clips"], videos["mask"]
        windows = windows_of(mask, self.config.searched or self.config.windows, self.config.overlap)
        parts = self.window_parts(clips, mask, windows)
        out = self.head(self.fuse(parts, queries["query"][:, None].expand(-1, parts.shape[1], -1)))
        count = mask.sum(1, keepdim=True)
        start, end = (windows.start + out[..., 1]) / count, (windows.end + out[..., 2]) / count
        return start, end, F.logsigmoid(out[..., 0]).masked_fill(~windows.valid, -torch.inf)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """A window of each pair against all queries of the batch, and the offsets of its ends (CTRL, section 4)."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "windows are told apart by their overlaps in time"
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        mask, query = videos["mask"], self.encode_words(batch.words)["query"][pairs.query]
        truth = pairs.times * mask.sum(1, keepdim=True)
        windows = windows_of(mask, config.windows, config.overlap)
        chosen, found = self.draw_windows(windows, truth, rng)
        one = windows.take(chosen)
        parts = self.window_parts(videos["clips"], mask, one)[:, 0]
        every = self.scores(parts, query)
        other = pairs.query[:, None] != pairs.query  # another pair of the same query is no wrong answer
        other.fill_diagonal_(True)
        aligned = alignment(every[..., 0], other & found[:, None] & found)
        asked = torch.cat([one.start, one.end], 1)
        error = (every.diagonal(dim1=0, dim2=1).T[:, 1:] - (truth - asked)).abs().mean(1)
        weight = pairs.weight * found
        return {
            "alignment": aligned,
            "offsets": config.regression * (error * weight).sum() / weight.sum().clamp(min=1e-6),
        }

    def scores(self, parts: Tensor, query: Tensor) -> Tensor:
        """(B, B, 3): every window with every query."""
        size = len(parts)
        left = parts[:, None].expand(size, size, *parts.shape[1:])
        found: Tensor = self.head(self.fuse(left, query.expand(size, size, -1)))
        return found

    def draw_windows(self, windows: Windows, truth: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """(n,): a window that fits each moment, and whether there is one."""
        iou, outside = window_overlaps(windows, truth)
        fits = (iou > self.config.least_overlap) & (outside < self.config.most_outside) & windows.valid
        return draw_negatives(iou, fits, None, rng)


def parts_beside(clips: Tensor, mask: Tensor, windows: Windows, context: int) -> tuple[Tensor, Tensor, Tensor]:
    """(n, windows, d) three times: the clips before, in and after each window; the window's where there are none."""
    own = window_means(clips, windows.start, torch.minimum(windows.end, mask.sum(1, keepdim=True)))
    around = []
    for start, end in beside(windows, mask.sum(1), context):
        around.append(torch.where((end > start)[..., None], window_means(clips, start, end), own))
    return around[0], own, around[1]


OFFICIAL_WINDOWS: Mapping[str, Any] = {"searched": (8, 16)}
"""What the public code does otherwise: only windows of 128 and 256 frames are searched."""
