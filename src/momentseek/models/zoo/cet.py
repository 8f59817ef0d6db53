"""CET: one transformer over clips and words, with networks for starts and ends (CroCs, appendix C.2, eq. 7–12).

Every pair of query and video costs a forward pass, so another model should rank the videos first.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from momentseek.models.batch import Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.registry import register
from momentseek.models.zoo.bet import BetConfig, ClipTokens, EdgeModel, mlp, transformer


class Cet(EdgeModel):
    """CET: one transformer over clips and words, and networks that find starts and ends."""

    retrieves: ClassVar[bool] = False

    def __init__(self, config: BetConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.clips = ClipTokens(config, dims)
        self.words = nn.Linear(dims.query, config.hidden)
        self.places = nn.Parameter(0.02 * torch.randn(config.max_words, config.hidden))
        self.together = transformer(config)
        self.start, self.end = mlp(config.hidden, 1), mlp(config.hidden, 1)

    def encode_words(self, words: Words) -> Encodings:
        """Project the words of queries to the hidden size and add their positions."""
        return {"words": self.words(words.features) + self.places[: words.mask.shape[1]], "word_mask": words.mask}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Project the clips of videos to the hidden size."""
        return {"clips": self.clips(clips), "mask": clips.mask}

    def edges(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """Scores of each clip as start and as end, from the clips' part of the joint encoding."""
        tokens = torch.cat([videos["clips"], queries["words"]], dim=1)
        mask = torch.cat([videos["mask"], queries["word_mask"]], dim=1)
        joint = self.together(tokens, src_key_padding_mask=~mask)[:, : videos["clips"].shape[1]]
        return self.start(joint)[..., 0], self.end(joint)[..., 0]


register("cet", BetConfig, Cet, "CET: cross-encoder transformer with start and end networks, a baseline of CroCs")
