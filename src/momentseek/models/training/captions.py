"""Train, validate and use captioners: batches of moments with captions, and captions for a split."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.evaluate import evaluate
from momentseek.models.captioner import CAPTIONERS, CaptionBatch, Captioner, CaptionerDims, caption_rows
from momentseek.models.features.data import CaptionSplit, Data, SubtitleLine, open_data
from momentseek.models.features.store import ArrayCache
from momentseek.models.inference.encode import StageCallback, inference_mode
from momentseek.models.model import Network
from momentseek.models.training.checkpoint import load_captioner
from momentseek.models.training.config import TrainConfig, summed_measures
from momentseek.models.training.pairs import Ints
from momentseek.models.training.processes import torch_device
from momentseek.recognition.captions.decoding import DecodingSettings
from momentseek.recognition.captions.inputs import (
    CaptionPreparation,
    MomentInputs,
    MomentParts,
    SaidLine,
    Vocabulary,
    build_vocabulary,
    caption_words,
    stack_moments,
)

MOMENTS_AT_ONCE = 128
NOT_FOR_CAPTIONS = ("first_stage", "lists", "begin")
"""Data settings that only models that find moments use."""


class CaptionMoments:
    """The moments of a split, with a cache of their clips of up to ``cache_mb`` megabytes."""

    def __init__(self, data: Data, split: CaptionSplit, preparation: CaptionPreparation, cache_mb: float = 256) -> None:
        self.split, self.preparation = split, preparation
        self._data = data
        self._cache = ArrayCache(cache_mb)
        self._words: dict[int, tuple[str, ...]] = {}
        self._lines: dict[str, list[SaidLine]] = {}
        self.columns = used_columns(data, preparation)
        table = split.table
        several = next((i for i, n in zip(table.query_ids, table.counts.tolist(), strict=True) if n != 1), None)
        if several is not None:
            raise MomentseekError(
                f"{table.source}: {several} has not exactly one moment; a captioner needs the video and times of each"
            )

    def __len__(self) -> int:
        return len(self.split.table)

    def check(self) -> None:
        """Check, without reading them, that the needed features and subtitles exist."""
        if self.preparation.reads and not self.split.subtitles:
            raise MomentseekError(
                f'{self._data.path}: names no subtitles (subtitles = "…jsonl"), and the captioner reads them; '
                "set modalities=video"
            )
        table = self.split.table
        for video in table.videos if self.preparation.sees else ():
            assert self._data.video is not None
            self._data.video.rows(video)

    def part(self, place: int) -> MomentParts:
        """The clips and words of one moment."""

        def read() -> NDArray[np.float32]:
            part = self._read(place)
            self._words[place] = part.words
            return part.clips

        clips = self._cache.get(("clips", place), read)
        return MomentParts(clips, self._words[place])

    def _read(self, place: int) -> MomentParts:
        table, seconds = self.split.table, self._data.clip_seconds
        video, start, end = table.videos[table.video[place]], float(table.start[place]), float(table.end[place])
        rows = np.zeros((int(np.ceil(end / seconds)) + 1, 0), np.float32)
        if self.preparation.sees:
            assert self._data.video is not None
            rows = self._data.video.read(video)
        lines = self._lines_of(video) if self.preparation.reads else []
        part = self.preparation.part(start, end, rows, lines, seconds)
        return MomentParts(part.clips.copy(), part.words)  # a copy, so that the whole video's rows are freed

    def inputs(self, places: Iterable[int], vocabulary: Vocabulary) -> MomentInputs:
        """The input of a captioner for some moments."""
        return stack_moments(
            [self.part(place) for place in places], vocabulary, self.columns, self.preparation.modalities
        )

    def _lines_of(self, video: str) -> list[SaidLine]:
        if video not in self._lines:
            self._lines[video] = [said_line(line) for line in self.split.subtitles.get(video, ())]
        return self._lines[video]


def said_line(line: SubtitleLine) -> SaidLine:
    """Split a line of subtitles into words."""
    return SaidLine(line.start, line.end, caption_words(line.text))


def used_columns(data: Data, preparation: CaptionPreparation) -> int:
    """Number of columns of the video features that a captioner uses; 0 if it uses no video."""
    if not preparation.sees:
        return 0
    if data.video is None:
        raise MomentseekError(f"{data.path}: has no video features, and the captioner needs them; set modalities")
    if preparation.columns is None:
        return data.video.dim
    first, last = preparation.columns
    if last > data.video.dim:
        raise MomentseekError(
            f"{data.path}: its video features have {data.video.dim:,} columns, and columns={first}:{last} needs more"
        )
    return last - first


class CaptionBatches:
    """Builds batches of chosen captions; every caption of the split is one example."""

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


@dataclass(frozen=True, eq=False)
class SplitDescription:
    """The captions that a trained captioner wrote for a split, and the settings it used."""

    captions: CaptionTable
    """One caption for each moment."""
    model: str
    """Name of the model, such as ``mmt``."""
    step: int
    """Training steps that the checkpoint had taken."""
    decoding: DecodingSettings
    simulated: bool
    """Whether the data are simulated."""

    def rows(self) -> list[dict[str, Any]]:
        """Id, video, start, end and caption of each moment."""
        table = self.captions
        columns = (table.query_ids, table.video.tolist(), table.start.tolist(), table.end.tolist(), table.captions)
        return [
            {"id": name, "video": table.videos[video], "start": start, "end": end, "caption": caption}
            for name, video, start, end, caption in zip(*columns, strict=True)
        ]


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

    ``beam`` and ``length_penalty`` default to the checkpoint's settings; a beam of 1 is greedy decoding.
    """
    trained = load_captioner(checkpoint)
    config = trained.model.config
    decoding = replace(
        config.decoding,
        beam=config.beam if beam is None else beam,
        length_penalty=config.length_penalty if length_penalty is None else length_penalty,
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
    """Write a caption for each moment."""
    captions: list[list[str]] = []
    for first in range(0, len(moments), MOMENTS_AT_ONCE):
        inputs = moments.inputs(range(first, min(first + MOMENTS_AT_ONCE, len(moments))), model.vocabulary)
        with inference_mode(model):
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


class NetworkValidation(ABC):
    """Evaluates a network on splits of the data during training."""

    protocol: ClassVar[str]
    """Protocol whose rules the measures follow."""

    def __init__(self, config: TrainConfig, data: Data) -> None:
        self.config, self.data = config, data

    @property
    def first_stage_source(self) -> dict[str, str] | None:
        """Path and digest of the first stage before the first step; None if there is none."""
        return None

    @abstractmethod
    def measures(
        self, model: Any, split: str, names: Sequence[str], progress: StageCallback | None = None
    ) -> dict[str, float]:
        """The measures of a model on a split, by name."""

    def value(self, model: Network, progress: StageCallback | None = None) -> float:
        """The figure by which the best checkpoint is chosen: the measure (or their sum) on the validation split."""
        split, names = self.config.data.validate, summed_measures(self.config.training.measure)
        return float(sum(self.measures(model, split, names, progress).values()))


class CaptionValidation(NetworkValidation):
    """Measures captioners on splits of the data."""

    protocol = "tvc"

    def __init__(self, config: TrainConfig, data: Data) -> None:
        super().__init__(config, data)
        self._moments: dict[str, CaptionMoments] = {}

    def moments(self, split: str) -> CaptionMoments:
        """The moments of a split, read once."""
        if split not in self._moments:
            found = CaptionMoments(self.data, self.data.captions(split), self.config.captioner_config.preparation)
            if not len(found.split.table.captions):
                raise MomentseekError(
                    f"{found.split.table.source}: has no captions to compare with; name another split to measure on"
                )
            self._moments[split] = found
        return self._moments[split]

    def measures(
        self, model: Captioner, split: str, names: Sequence[str], progress: StageCallback | None = None
    ) -> dict[str, float]:
        """The measures of a captioner on a split, by name."""
        if not names:
            return {}
        moments = self.moments(split)
        described = describe_moments(model, moments, progress=progress)
        return evaluate(described, moments.split.table, names, protocol=self.protocol, missing="zero").means


def prepare_captions(
    config: TrainConfig, data: Data, splits: Sequence[str]
) -> tuple[Captioner, CaptionBatches, CaptionValidation]:
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
    _ = data.fingerprint_of(splits)  # cached now: the report needs that of the data before the first step
    batches = CaptionBatches(moments, settings.max_caption, settings.threshold)
    torch.manual_seed(training.seed)
    dims = CaptionerDims(moments.columns, batches.vocabulary.words)
    return CAPTIONERS[config.model].model(settings, dims), batches, validation
