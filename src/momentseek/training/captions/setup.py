"""What training a captioner needs, made and checked before the first step: batches, the model, its validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from momentseek.errors import MomentseekError
from momentseek.features.data import Data
from momentseek.models.captioner import CAPTIONERS, Captioner, CaptionerDims
from momentseek.training.captions.batches import CaptionBatches
from momentseek.training.captions.moments import CaptionMoments
from momentseek.training.captions.validation import CaptionValidation
from momentseek.training.config import TrainConfig

NOT_FOR_CAPTIONS = ("first_stage", "lists", "begin")
"""Settings of the data that only models have that find moments."""


@dataclass(frozen=True, eq=False)
class CaptionTraining:
    """The parts of a captioner's training that are its own."""

    model: Captioner
    batches: CaptionBatches
    validation: CaptionValidation


def prepare_captions(config: TrainConfig, data: Data, splits: Sequence[str]) -> CaptionTraining:
    """Check the splits and build the captioner with the vocabulary of its training captions."""
    for name in NOT_FOR_CAPTIONS:
        if getattr(config.data, name) is not None:
            raise MomentseekError(f"{config.model} describes moments and has no use for {name}; leave it out")
    settings, training = config.captioner_config, config.training
    validation = CaptionValidation(config, data)
    for name in splits:
        if name != config.data.train:
            validation.moments(name).check()
    split = data.captions(config.data.train)
    moments = CaptionMoments(data, split, settings.preparation, training.cache_mb)
    moments.check()
    _ = data.fingerprint_of(splits)  # the report's: of the data before the first step, too
    batches = CaptionBatches(moments, settings.max_caption, settings.threshold)
    torch.manual_seed(training.seed)
    dims = CaptionerDims(moments.columns, batches.vocabulary.words)
    return CaptionTraining(CAPTIONERS[config.model].model(settings, dims), batches, validation)
