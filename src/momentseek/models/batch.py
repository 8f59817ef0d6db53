"""What a model sees: queries as words, videos as clips, and which pairs of them belong together.

Queries and videos of a batch are distinct, and pairs point at them. A video that answers several queries of the batch
is encoded once, and whether a query has other answers in the batch (the positive-pair mask of TVR-Ranking, appendix
C.1) is known rather than guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Encoded = dict[str, Tensor]
"""What a model keeps of queries or videos: tensors by name, one row per query or video in each."""


@dataclass(frozen=True, eq=False)
class Words:
    """Queries as rows of word features."""

    features: Tensor
    """(queries, words, dim)."""
    mask: Tensor
    """(queries, words), True where there is a word."""


@dataclass(frozen=True, eq=False)
class Clips:
    """Videos as rows of clip features; a modality the model is not given is None."""

    video: Tensor | None
    """(videos, clips, dim)."""
    subtitle: Tensor | None
    """(videos, clips, dim); rows of silence are zero."""
    mask: Tensor
    """(videos, clips), True where there is a clip."""

    def __len__(self) -> int:
        return len(self.mask)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Query ``query[i]`` is answered by clips ``start[i]`` to ``end[i]``, both included, of video ``video[i]``."""

    query: Tensor
    """(pairs,), rows of the batch's words."""
    video: Tensor
    """(pairs,), rows of the batch's clips."""
    start: Tensor
    end: Tensor
    weight: Tensor
    """(pairs,), similarity of query and caption; 1 where the data say nothing."""
    positive: Tensor
    """(queries, videos), True where the training set holds the query and the video for related."""


@dataclass(frozen=True, eq=False)
class Batch:
    """A training step's input."""

    words: Words
    clips: Clips
    pairs: Pairs

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""

        def moved(t: Tensor | None) -> Tensor | None:
            return None if t is None else t.to(device, non_blocking=True)

        def sure(t: Tensor) -> Tensor:
            return t.to(device, non_blocking=True)

        return Batch(
            Words(sure(self.words.features), sure(self.words.mask)),
            Clips(moved(self.clips.video), moved(self.clips.subtitle), sure(self.clips.mask)),
            Pairs(*(sure(getattr(self.pairs, n)) for n in ("query", "video", "start", "end", "weight", "positive"))),
        )


def rows(encoded: Encoded, index: Tensor) -> Encoded:
    """The rows at ``index`` of everything kept.

    >>> rows({"v": torch.tensor([[1.0], [2.0]])}, torch.tensor([1, 1]))["v"].tolist()
    [[2.0], [2.0]]
    """
    return {name: tensor[index] for name, tensor in encoded.items()}
