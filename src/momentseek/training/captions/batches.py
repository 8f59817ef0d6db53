"""A training step's captions and their moments."""

from __future__ import annotations

import numpy as np
import torch

from momentseek.captioning.vocabulary import Vocabulary, build_vocabulary
from momentseek.captioning.words import caption_words
from momentseek.errors import MomentseekError
from momentseek.models.captioner import CaptionBatch, caption_rows
from momentseek.training.captions.moments import CaptionMoments
from momentseek.training.order import Ints


class CaptionBatches:
    """Makes batches of chosen captions; every caption of the split is one example."""

    def __init__(self, moments: CaptionMoments, longest: int, threshold: int) -> None:
        table = moments.split.table
        self.moments, self._longest = moments, longest
        self._words = [caption_words(caption) for caption in table.captions]
        self._moment = np.repeat(np.arange(len(table)), table.caption_counts)
        kept = [i for i, words in enumerate(self._words) if words]
        if not kept:
            raise MomentseekError(f"{table.source}: has no captions, so there is nothing to learn from")
        self._kept = np.array(kept)
        self.vocabulary: Vocabulary = build_vocabulary(self._words, threshold)

    def __len__(self) -> int:
        return len(self._kept)

    def batch(self, chosen: Ints, rng: np.random.Generator | None = None) -> CaptionBatch:
        """The batch of these captions."""
        places = self._kept[chosen]
        inputs = self.moments.inputs(self._moment[places].tolist(), self.vocabulary)
        return CaptionBatch(
            torch.from_numpy(inputs.clips),
            torch.from_numpy(inputs.tokens),
            torch.from_numpy(inputs.mask),
            caption_rows([self._words[i] for i in places.tolist()], self.vocabulary, self._longest),
        )
