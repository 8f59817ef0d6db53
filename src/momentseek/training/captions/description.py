"""Captions of the moments of a split, by a trained captioner."""

from __future__ import annotations

import os
from dataclasses import dataclass

from momentseek.captioning.decoding import DecodingSettings
from momentseek.errors import MomentseekError
from momentseek.features.data import Data, open_data
from momentseek.models.captioner import Captioner
from momentseek.models.inference.encode import StageCallback
from momentseek.moments import CaptionTable
from momentseek.training.captions.moments import CaptionMoments
from momentseek.training.checkpoint import load_captioner
from momentseek.training.processes import torch_device

MOMENTS_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class SplitDescription:
    """The captions of a trained captioner for a split, and how they were made."""

    captions: CaptionTable
    """One caption for each moment."""
    model: str
    """Name of the model, such as ``mmt``."""
    step: int
    """Training steps that the checkpoint had taken."""
    decoding: DecodingSettings
    simulated: bool
    """Whether the data are simulated."""


def describe_split(
    checkpoint: str | os.PathLike[str],
    data: Data | str | os.PathLike[str],
    split: str,
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
    device: str | None = None,
    progress: StageCallback | None = None,
) -> SplitDescription:
    """Describe the moments of a split with the captioner of a checkpoint, a file or the folder of a training run.

    ``beam`` and ``length_penalty`` are those that it was trained with unless given; a beam of 1 is greedy.
    """
    trained = load_captioner(checkpoint)
    config = trained.model.config
    decoding = DecodingSettings(
        config.beam if beam is None else beam,
        config.length_penalty if length_penalty is None else length_penalty,
        config.max_caption,
    )
    with open_data(data) as opened:
        moments = CaptionMoments(opened, opened.captions(split), config.preparation)
        if moments.columns != trained.model.dims.video:
            raise MomentseekError(
                f"{opened.path}: video features have {moments.columns:,} columns and {checkpoint} was trained on "
                f"{trained.model.dims.video:,}; give the data it was trained on, or extract with the same encoder"
            )
        moments.check()
        model = trained.model.to(torch_device(device or trained.config.training.device))
        captions = describe_moments(model, moments, decoding, progress)
        return SplitDescription(captions, trained.config.model, trained.step, decoding, opened.simulated)


def describe_moments(
    model: Captioner,
    moments: CaptionMoments,
    decoding: DecodingSettings | None = None,
    progress: StageCallback | None = None,
) -> CaptionTable:
    """A caption for each moment, by a model in evaluation mode."""
    captions: list[list[str]] = []
    for places in moments.in_batches(MOMENTS_AT_ONCE):
        inputs = moments.inputs(places, model.vocabulary)
        captions += [[caption] for caption in model.describe(inputs, decoding)]
        if progress is not None:
            progress("describing", len(captions), len(moments))
    table = moments.split.table
    return CaptionTable.from_groups(
        table.query_ids,
        captions,
        [1] * len(table),
        [table.videos[v] for v in table.video.tolist()],
        table.start,
        table.end,
        source=f"captions of {table.source}",
    )
