"""The base class of Moment-DETR, QD-DETR and UniVTG: settings, inputs, and conversion of windows to seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from momentseek.core.moments.arrays import FloatArray
from momentseek.models.batch import Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.detr import InputProjection, sine_positions
from momentseek.models.layers.projection import Positions, clip_width
from momentseek.models.model import CorpusModel, GroundingConfig, at_least, below_one, one_of
from momentseek.recognition.exported.preparation import parse_modalities

PUBLIC_DECIMALS = 4
"""Number of decimals of the times and scores that the public code writes."""


@dataclass(frozen=True, kw_only=True)
class HighlightConfig(GroundingConfig):
    """Settings of models that find several windows of a video and rate the saliency of its clips."""

    official: ClassVar[Mapping[str, Any]] = {"seconds": "duration"}
    hidden: int = 256
    heads: int = 8
    feedforward: int = 1024
    encoder_layers: int = 2
    projections: int = 2
    """Number of layers that project features to ``hidden`` columns."""
    dropout: float = 0.1
    input_dropout: float = 0.5
    max_clips: int = 75
    max_words: int = 32
    endpoints: bool = True
    word_positions: bool = False
    """Add learned positions to the words."""
    windows: int = 5
    """Maximum number of windows of a query in a training step."""
    seconds: str = "clips"
    """What predicted shares refer to: the time that the ``clips`` cover, as in training, or as in the public code the
    video's ``duration``, with times and scores rounded to four decimals. Training then counts whole clips only."""
    round_to: float = 0.0
    """Round predicted times to multiples of this many seconds; 0 leaves them as they are."""
    latest: float = 0.0
    """Latest second that is predicted, whatever the video's duration; 0 for the end of the video."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "feedforward", "encoder_layers", "projections", "windows")
        at_least(self, 0, "round_to", "latest")
        below_one(self, "input_dropout")
        one_of(self, "seconds", "clips", "duration")
        one_of(self, "fit", "truncate", "resample")


class HighlightModel(CorpusModel):
    """Base class of models of windows and saliency, which project words and clips and read each pair together."""

    retrieves: ClassVar[bool] = False
    whole_queries: ClassVar[bool] = True
    rates_clips: ClassVar[bool] = True
    config: HighlightConfig

    def __init__(self, config: HighlightConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.modalities = parse_modalities(config.modalities)
        columns = sum(clip_width(dims, config, name) for name in self.modalities)
        self.word_in = InputProjection(dims.query, config.hidden, config.projections, config.input_dropout)
        self.clip_in = InputProjection(columns, config.hidden, config.projections, config.input_dropout)
        self.word_places = (
            Positions(config.max_words, config.hidden, config.input_dropout) if config.word_positions else None
        )

    @property
    def pair_numbers(self) -> int:
        """Number of values between the layers and in the attention."""
        config = self.config
        return 4 * config.hidden + config.feedforward + 2 * config.heads * (config.max_clips + config.max_words)

    def encode_words(self, words: Words) -> Encodings:
        """Project the words, and add their positions if the model has any."""
        rows = self.word_in(words.features)
        placed = {} if self.word_places is None else {"word_places": self.word_places(rows)}
        return {"words": rows, "words_mask": words.mask, **placed}

    def encode_clips(self, clips: Clips) -> Encodings:
        """Project the clips of all modalities, side by side."""
        rows = self.clip_in(torch.cat([clips.modality(name) for name in self.modalities], dim=2))
        return {"clips": rows, "mask": clips.mask}

    def places(self, queries: Encodings, videos: Encodings) -> tuple[Tensor, Tensor]:
        """Positions of clips (sine waves over the video) and of words (0, or learned)."""
        words = queries["word_places"] if self.word_places is not None else torch.zeros_like(queries["words"])
        return sine_positions(videos["mask"], videos["clips"]), words

    def to_seconds(
        self, start: FloatArray, end: FloatArray, score: FloatArray, covered: FloatArray, duration: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Convert shares to seconds inside the video, cut and rounded according to the settings."""
        config = self.config
        public = config.seconds == "duration"
        known = np.where(np.isnan(duration), covered, duration)
        last = config.latest or (known if public else np.fmin(covered, known))
        times = np.clip(np.stack([start, end]) * (known if public else covered), 0, last)
        if public:
            times, score = times.round(PUBLIC_DECIMALS), score.round(PUBLIC_DECIMALS)
        if config.round_to:
            times = np.round(times / config.round_to) * config.round_to
        return times[0], times[1], score
