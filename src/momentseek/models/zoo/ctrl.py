"""CTRL: scores sliding windows with their context by sums and products with the query (Gao et al., ICCV 2017).

The base class of CTRL and ACRN comes first: sliding windows of several lengths, scored with the query. A window
is encoded by the mean of its clips and of those around it. Window and query together give a score and two offsets, so a
moment need not begin or end where a window does. Windows of each length begin at every ``(1 - overlap) length`` clips
and lie inside the video. A video shorter than the shortest window has one window, the whole video.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import normalize

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import JointClips
from momentseek.models.layers.recurrent import SENTENCE_ENCODERS, Sentence
from momentseek.models.losses import draw_negatives
from momentseek.models.model import CorpusModel, GroundingConfig, Predicted, at_least, below_one, one_of
from momentseek.models.registry import register

OFFICIAL_WINDOWS: Mapping[str, Any] = {"searched": (8, 16)}
"""Settings of the public code, which searches only windows of 128 and 256 frames."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of videos, each (n, windows): clips from ``start`` to before ``end``, and whether the window is real."""

    start: Tensor
    end: Tensor
    valid: Tensor

    def take(self, index: Tensor) -> Windows:
        """Select one window of each video by its index (n,); returns windows (n, 1)."""
        return Windows(*(x.gather(1, index[:, None]) for x in (self.start, self.end, self.valid)))


@cache
def window_grid(clips: int, lengths: tuple[int, ...], overlap: float) -> tuple[tuple[int, int], ...]:
    """First clips and ends of all windows among ``clips`` clips, by length and then by place.

    >>> window_grid(5, (2, 4), 0.5)
    ((0, 2), (1, 3), (2, 4), (3, 5), (0, 4))
    """
    return tuple(
        (start, start + length)
        for length in lengths
        for start in range(0, clips - length + 1, max(1, round(length * (1 - overlap))))
    )


def windows_of(mask: Tensor, lengths: Sequence[int], overlap: float) -> Windows:
    """The windows of videos with the mask ``mask`` (n, L); the first is for videos that have no other.

    >>> found = windows_of(torch.tensor([[True, True, True], [True, False, False]]), (2,), 0.5)
    >>> found.valid.tolist(), found.end[1].tolist()
    ([[False, True, True], [True, False, False]], [1, 2, 3])
    """
    counts = mask.sum(1, keepdim=True)
    listed = window_grid(mask.shape[1], tuple(lengths), overlap)
    grid = torch.tensor(listed, dtype=torch.long, device=mask.device).reshape(-1, 2)
    start = torch.cat([torch.zeros_like(counts), grid[:, 0].expand(len(mask), -1)], 1)
    end = torch.cat([counts, grid[:, 1].expand(len(mask), -1)], 1)
    valid = end <= counts
    valid[:, 0] = counts[:, 0] < min(lengths)
    return Windows(start, end, valid)


def window_means(x: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """(n, L, d), (n, W), (n, W) -> (n, W, d): means of rows ``start`` to before ``end``; zero where there are none.

    >>> rows = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> window_means(rows, torch.tensor([[0, 1, 2]]), torch.tensor([[2, 3, 2]])).flatten().tolist()
    [2.0, 5.5, 0.0]
    """
    sums = torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)], 1)
    first, last = (sums.gather(1, at[..., None].expand(-1, -1, x.shape[2])) for at in (start, end))
    return (last - first) / (end - start).clamp(min=1)[..., None]


def clips_around(windows: Windows, counts: Tensor, context: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Starts and ends of up to ``context`` clips before and after each window; equal where there are none."""
    counts = counts[:, None]
    end = torch.minimum(windows.end, counts)  # padding has no context
    return ((windows.start - context).clamp(min=0), windows.start), (end, torch.minimum(end + context, counts))


def window_overlaps(windows: Windows, times: Tensor) -> tuple[Tensor, Tensor]:
    """IoU of windows (n, W) with a moment of each video, (n, 2) in clips, and the share of each window outside it.

    >>> one = Windows(torch.tensor([[0]]), torch.tensor([[4]]), torch.tensor([[True]]))
    >>> [x.tolist() for x in window_overlaps(one, torch.tensor([[1.0, 5.0]]))]
    [[[0.6000000238418579]], [[0.25]]]
    """
    first, last = times[:, :1], times[:, 1:]
    length = (windows.end - windows.start).to(times)
    shared = (torch.minimum(windows.end, last) - torch.maximum(windows.start, first)).clamp(min=0)
    return shared / (length + (last - first) - shared), (length - shared) / length.clamp(min=1)


def alignment(scores: Tensor, counted: Tensor) -> Tensor:
    """``mean_ij a_ij log(1 + exp(m_ij c_ij))`` of scores c (B, B), right ones on the diagonal.

    m is -1 on the diagonal and +1 off it; a is ``1 + 1/B`` on the diagonal and ``1/B`` off it (Gao et al. 2017, public
    code). Pairs where ``counted`` is false are left out.

    >>> round(alignment(torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool)).item(), 4)  # (1.5 + 0.5) log(2) / 2
    0.6931
    """
    size = len(scores)
    right = torch.eye(size, dtype=torch.bool, device=scores.device)
    weight = (right.to(scores) + 1 / max(size, 1)) * counted
    signed = torch.where(right, -scores, scores)
    return (weight * F.softplus(signed)).sum() / counted.sum().clamp(min=1)


@dataclass(frozen=True, kw_only=True)
class WindowConfig(GroundingConfig):
    """Settings of models of sliding windows; lengths are in clips, which had 16 frames in the papers."""

    hidden: int = 1024
    max_clips: int = 300
    head: int = 1000
    """Number of hidden columns of the network that computes the score and the two offsets."""
    windows: tuple[int, ...] = (4, 8, 16, 32)
    """Lengths of the windows in training (64 to 512 frames)."""
    searched: tuple[int, ...] = ()
    """Lengths of the windows in search (128 and 256 frames in the public code); by default those of training."""
    overlap: float = 0.8
    """Share of a window that overlaps the next one of its length."""
    context: int = 8
    """Number of clips before and after a window that are its context (128 frames)."""
    least_overlap: float = 0.5
    """A window is trained for a query if its IoU with the moment is above this …"""
    most_outside: float = 0.15
    """… and less than this share of it lies outside the moment (0.15 in the public code, 0.2 in the paper)."""
    regression: float = 0.16
    """Weight of the offsets' error, which is in clips (0.01 per frame, at 16 frames per clip)."""
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
        below_one(self, "overlap", "least_overlap", "most_outside")


class WindowModel(CorpusModel):
    """Base class of models of sliding windows; subclasses encode windows and fuse them with the query."""

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
        """(n, windows, …): encode windows independently of the query."""

    @abstractmethod
    def fuse(self, parts: Tensor, query: Tensor) -> Tensor:
        """(…, fused): fuse window and query; ``query`` (…, hidden) has the leading axes of ``parts``."""

    @property
    def pair_numbers(self) -> int:
        """Number of values for windows of every length that begin at a clip."""
        return len(self.config.windows) * (2 * self.fused + self.config.head)

    def check_lengths(self, clips: Mapping[str, int]) -> None:
        """Refuse videos that are shorter than the shortest window."""
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
        """Map the clips once, because the means over windows are linear."""
        return {"clips": self.clips(clips) * clips.mask[..., None], "mask": clips.mask}

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """Every window with its ends moved by the offsets; the score is a log-probability."""
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
        other = pairs.query[:, None] != pairs.query  # another pair of the same query is not a negative
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
        return self.head(self.fuse(left, query.expand(size, size, -1)))

    def draw_windows(self, windows: Windows, truth: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """(n,): a window that fits each moment, and whether there is one."""
        iou, outside = window_overlaps(windows, truth)
        fits = (iou > self.config.least_overlap) & (outside < self.config.most_outside) & windows.valid
        return draw_negatives(iou, fits, None, rng)


def parts_around(clips: Tensor, mask: Tensor, windows: Windows, context: int) -> tuple[Tensor, Tensor, Tensor]:
    """(n, windows, d) three times: the clips before, in and after each window; the window's where there are none."""
    own = window_means(clips, windows.start, torch.minimum(windows.end, mask.sum(1, keepdim=True)))
    around = []
    for start, end in clips_around(windows, mask.sum(1), context):
        around.append(torch.where((end > start)[..., None], window_means(clips, start, end), own))
    return around[0], own, around[1]


@dataclass(frozen=True, kw_only=True)
class CtrlConfig(WindowConfig):
    """CTRL's settings."""

    official: ClassVar[Mapping[str, Any]] = OFFICIAL_WINDOWS


class Ctrl(WindowModel):
    """``[v ∘ s; v + s; v; s]`` of a window's vector v, with its context, and the query's s, both of length 1."""

    config: CtrlConfig

    def __init__(self, config: CtrlConfig, dims: Dims) -> None:
        super().__init__(config, dims, 3 * config.hidden, 4 * config.hidden)

    def window_parts(self, clips: Tensor, mask: Tensor, windows: Windows) -> Tensor:
        """(n, windows, hidden): ``unit(W_1 left + W_2 own + W_3 right + b)``."""
        parts = parts_around(clips, mask, windows, self.config.context)
        blocks = (part.chunk(3, dim=2)[place] for place, part in enumerate(parts))
        return normalize(torch.stack(list(blocks)).sum(0), dim=2)

    def fuse(self, parts: Tensor, query: Tensor) -> Tensor:
        """Product, sum and both vectors side by side."""
        asked = normalize(query, dim=-1)
        return torch.cat([parts * asked, parts + asked, parts, asked], dim=-1)


register("ctrl", CtrlConfig, Ctrl, "CTRL: sliding windows scored with the query, their ends moved by offsets")
