"""The base class of captioners, their settings and batches, and the registry of captioners by name.

A captioner describes a given moment, while a ``CorpusModel`` finds moments; the same loop trains both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.registry import Registry
from momentseek.models.model import Network, at_least, below_one, one_of, parse_columns
from momentseek.models.registry import ModelSpec
from momentseek.recognition.captions.decoding import DecodingSettings, decode_captions
from momentseek.recognition.captions.inputs import BOS, EOS, PAD, CaptionPreparation, MomentInputs, Vocabulary


@dataclass(frozen=True, kw_only=True)
class CaptionerConfig:
    """Settings that every captioner has; each adds its own in a subclass."""

    official: ClassVar[Mapping[str, Any]] = {}
    """Settings that reproduce the public implementation (``as=official``)."""

    hidden: int = 768
    dropout: float = 0.1
    modalities: str = "video+subtitle"
    """``video``, ``subtitle``, both, or ``none`` (a language model without input)."""
    columns: str | None = None
    """Columns of the video features to use, such as ``0:2048`` for ResNet in TVR's file; all by default."""
    max_clips: int = 18
    """Maximum number of clips of a moment; longer moments are sampled evenly."""
    max_words: int = 28
    """Maximum number of words read from the subtitles."""
    max_caption: int = 18
    """Maximum number of words of a caption."""
    end_clip: str = "inclusive"
    """Where a moment's clips end: with its last clip, or (``official``) one clip later, as in MMT's public code."""
    captions: str = "plain"
    """``plain``, or ``official`` for captions as in MMT's public code.

    Those may contain special words other than [UNK], be empty, and be one word longer.
    """
    threshold: int = 5
    """The vocabulary has the words that occur more often than this in the training captions."""
    beam: int = 1
    """Beam size of decoding; 1 is greedy, as in the paper."""
    length_penalty: float = 1.0
    """How strongly beam search favours long captions; 0 compares plain probabilities, which favours short ones."""

    def __post_init__(self) -> None:
        at_least(self, 1, "hidden", "heads", "layers", "max_clips", "max_words", "max_caption")
        at_least(self, 0, "threshold")
        one_of(self, "captions", "plain", "official")
        below_one(self, "dropout")
        heads: int = getattr(self, "heads", 1)
        if self.hidden % heads:
            raise MomentseekError(
                f"model: hidden {self.hidden} cannot be divided among {heads} heads; choose a multiple"
            )
        try:
            _ = self.preparation, self.decoding
        except MomentseekError as e:
            raise MomentseekError(f"model: {e}") from None

    @property
    def preparation(self) -> CaptionPreparation:
        """How a moment is prepared as the captioner's input."""
        return CaptionPreparation(
            modalities=self.modalities,
            max_clips=self.max_clips,
            max_words=self.max_words,
            end_clip=self.end_clip,
            columns=parse_columns(self.columns),
        )

    @property
    def decoding(self) -> DecodingSettings:
        """The default settings of decoding."""
        plain = self.captions == "plain"
        return DecodingSettings(self.beam, self.length_penalty, self.max_caption + (not plain), plain)


@dataclass(frozen=True)
class CaptionerDims:
    """The sizes of a captioner: the number of columns of a clip, and its vocabulary."""

    video: int
    """Number of used columns of the video features; 0 for a captioner without video."""
    vocabulary: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CaptionBatch:
    """The input of a training step: moments with a caption each."""

    clips: Tensor
    """(captions, clips, columns), as ``MomentInputs.clips``."""
    tokens: Tensor
    """(captions, clips + words)."""
    mask: Tensor
    """(captions, clips + words)."""
    caption: Tensor
    """(captions, words): [BOS], the words, [EOS], then padding."""

    def __len__(self) -> int:
        return len(self.caption)

    def to(self, device: torch.device | str) -> CaptionBatch:
        """Copy the batch to a device."""
        return CaptionBatch(*(part.to(device) for part in (self.clips, self.tokens, self.mask, self.caption)))


class Captioner(Network):
    """The base class of captioners: ``training`` trains it, and ``describe`` writes captions with it."""

    config: CaptionerConfig
    dims: CaptionerDims

    def __init__(self, config: CaptionerConfig, dims: CaptionerDims) -> None:
        super().__init__(config, dims)
        self.vocabulary = Vocabulary(dims.vocabulary)

    @abstractmethod
    def encode(self, clips: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """(moments, rows, hidden): encode moments for the decoder; ``mask`` is False in the padding."""

    @abstractmethod
    def logits(self, memory: Tensor, mask: Tensor, begun: Tensor) -> Tensor:
        """(moments, words, vocabulary): the logits of the next word after each word of unfinished captions."""

    @abstractmethod
    def loss(self, batch: CaptionBatch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss by name; training minimises their sum."""

    @torch.no_grad()
    def describe(self, inputs: MomentInputs, decoding: DecodingSettings | None = None) -> list[str]:
        """Write a caption for each moment."""
        device = next(self.parameters()).device
        clips, tokens, mask = (torch.from_numpy(a).to(device) for a in (inputs.clips, inputs.tokens, inputs.mask))
        memory = self.encode(clips, tokens, mask)

        def next_words(rows: IntArray, begun: IntArray) -> FloatArray:
            at = torch.from_numpy(rows).to(device)
            found = self.logits(memory[at], mask[at], torch.from_numpy(begun).to(device))[:, -1]
            return found.double().log_softmax(-1).cpu().numpy()

        found = decode_captions(next_words, len(inputs), self.vocabulary, decoding or self.config.decoding)
        return [self.vocabulary.text(caption) for caption in found]


def caption_rows(captions: Sequence[Sequence[str]], vocabulary: Vocabulary, most: int) -> Tensor:
    """Turn captions into rows of word numbers: [BOS], at most ``most`` words, [EOS], then padding."""
    number = vocabulary.number
    rows = [[number[BOS], *vocabulary.numbers(words[:most]), number[EOS]] for words in captions]
    stacked = np.full((len(rows), max(map(len, rows))), number[PAD], np.int64)
    for at, row in enumerate(rows):
        stacked[at, : len(row)] = row
    return torch.from_numpy(stacked)


CAPTIONERS: Registry[ModelSpec] = Registry("captioner", "momentseek.models.zoo", group="captioners")


def register_captioner(name: str, config: type[CaptionerConfig], model: type[Captioner], summary: str) -> None:
    """Register a captioner by name; its file calls this once, at its end."""
    CAPTIONERS.add(name, ModelSpec(name, config, model, summary))
