"""``mean-gru``: a recurrent network writes a caption from the mean of a moment's clips."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from momentseek.models.captioner import CaptionBatch, Captioner, CaptionerConfig, CaptionerDims, register_captioner
from momentseek.models.model import at_least
from momentseek.recognition.captions.inputs import PAD


@dataclass(frozen=True, kw_only=True)
class MeanGruConfig(CaptionerConfig):
    """Settings of the captioner, in addition to those that all captioners have."""

    hidden: int = 64
    modalities: str = "video"
    word_dim: int = 32
    """Columns of a word's embedding."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "word_dim")


class MeanGru(Captioner):
    """The clips' mean is the state that the network begins with; each word is chosen by the state after the last."""

    config: MeanGruConfig

    def __init__(self, config: MeanGruConfig, dims: CaptionerDims) -> None:
        super().__init__(config, dims)
        self.pad = self.vocabulary.number[PAD]
        self.seen = nn.Linear(dims.video, config.hidden)
        self.word = nn.Embedding(len(self.vocabulary), config.word_dim, padding_idx=self.pad)
        self.network = nn.GRU(config.word_dim, config.hidden, batch_first=True)
        self.choose = nn.Linear(config.hidden, len(self.vocabulary))

    def encode(self, clips: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """(moments, 1, hidden); rows of zeros stand for padding."""
        there = clips.any(2, keepdim=True)
        return torch.tanh(self.seen(clips.sum(1) / there.sum(1).clamp(min=1)))[:, None]

    def logits(self, memory: Tensor, mask: Tensor, begun: Tensor) -> Tensor:
        states, _ = self.network(self.word(begun), memory.transpose(0, 1).contiguous())
        return self.choose(states)

    def loss(self, batch: CaptionBatch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        memory = self.encode(batch.clips, batch.tokens, batch.mask)
        chosen = self.logits(memory, batch.mask, batch.caption[:, :-1])
        return {"words": nn.functional.cross_entropy(chosen.mT, batch.caption[:, 1:], ignore_index=self.pad)}


register_captioner("mean-gru", MeanGruConfig, MeanGru, "a caption from the mean of a moment's clips (example plug-in)")
