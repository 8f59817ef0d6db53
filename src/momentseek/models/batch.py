"""A model's input: queries as words, videos as clips, and the pairs that belong together.

The queries and videos of a batch are distinct, and pairs refer to them by row. A video that answers several queries of
the batch is encoded once. A mask says which other videos of the batch answer a query (the positive-pair mask of
TVR-Ranking, appendix C.1).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError

Encodings = dict[str, Tensor]
"""A model's encodings of queries or videos: tensors by name, each with one row per query or video."""


@dataclass(frozen=True, eq=False)
class Words:
    """Queries as rows of word features."""

    features: Tensor
    """Features of the words, of shape (queries, words, dim)."""
    mask: Tensor
    """Mask of shape (queries, words), False in the padding."""
    roles: Tensor | None = None
    """Roles of shape (queries, words): 0 for most words, 1 for verbs, 2 for nouns; None if words were not parsed."""
    phrase: Tensor | None = None
    """(queries, words): number of the verb, from 0, that a verb is or a noun belongs to; -1 for other words."""
    ids: Tensor | None = None
    """(queries, words of the text): a fixed number for each word, 0 in the padding (see ``models.inputs.word_ids``), or
    tokens of a text tower, -1 in the padding. None if the model does not read the text."""


@dataclass(frozen=True, eq=False)
class Clips:
    """Videos as rows of clip features; a modality that the model does not use is None."""

    video: Tensor | None
    """Features of the clips' pictures, of shape (videos, clips, dim)."""
    subtitle: Tensor | None
    """Features of the clips' subtitles, of shape (videos, clips, dim); rows without subtitles are zero."""
    mask: Tensor
    """Mask of shape (videos, clips), False in the padding."""

    def __len__(self) -> int:
        return len(self.mask)

    def modality(self, name: str) -> Tensor:
        """The features of a modality, (videos, clips, dim); raises an error if the batch lacks them."""
        features: Tensor | None = getattr(self, name)
        if features is None:
            raise MomentseekError(f"the batch has no {name} features, and the model needs them; set modalities")
        return features


@dataclass(frozen=True, eq=False)
class BatchPairs:
    """Pairs of a query and a moment: clips ``start[i]`` to ``end[i]`` of video ``video[i]`` answer ``query[i]``."""

    query: Tensor
    """(pairs,), rows of the batch's words."""
    video: Tensor
    """(pairs,), rows of the batch's clips."""
    start: Tensor
    """(pairs,), the first clip of the moment."""
    end: Tensor
    """(pairs,), the last clip of the moment, included."""
    weight: Tensor
    """(pairs,), similarity of query and caption; 1 if the data have none."""
    positive: Tensor
    """(queries, videos), True if query and video are related in the training set."""
    times: Tensor | None = None
    """(pairs, 2), start and end as shares of the video's duration, for models whose targets are overlaps."""
    hard_videos: Tensor | None = None
    """(queries, videos), True if the video was drawn as a hard negative of the query; None without hard negatives."""
    hard_queries: Tensor | None = None
    """(queries, videos), True if the query was drawn as a hard negative of the video."""
    ratings: Tensor | None = None
    """(queries, clips, annotators), saliency ratings of the clips of a query's video, from 0 to 4; None if the truth
    has no ratings, or the model does not use them."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of a training step: queries, videos and the pairs among them."""

    words: Words
    clips: Clips
    pairs: BatchPairs

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.pairs.query)

    def to(self, device: torch.device | str) -> Batch:
        """Copy the batch to a device."""

        def move(part: Any) -> Any:
            values = (getattr(part, field.name) for field in fields(part))
            return type(part)(*(None if v is None else v.to(device, non_blocking=True) for v in values))

        return Batch(move(self.words), move(self.clips), move(self.pairs))


def take_rows(encoded: Encodings, index: Tensor) -> Encodings:
    """Take the rows at ``index`` of every tensor.

    >>> take_rows({"v": torch.tensor([[1.0], [2.0]])}, torch.tensor([1, 1]))["v"].tolist()
    [[2.0], [2.0]]
    """
    return {name: tensor[index] for name, tensor in encoded.items()}
