"""Export a checkpoint: a captioner, or a model together with the encoders of its features."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError, parameter
from momentseek.models.captioner import Captioner
from momentseek.models.export.graphs import Axes, Inputs, PartOfModel, difference_from_torch, trace
from momentseek.models.export.writing import ExportReport, export, write_export
from momentseek.models.features.data import Data
from momentseek.models.model import CorpusModel
from momentseek.models.training.checkpoint import (
    Checkpoint,
    SavedTraining,
    is_captioner,
    load_captioner,
    load_checkpoint,
    refuse_other_dims,
)
from momentseek.models.zoo.mmt import MMT
from momentseek.models.zoo.xml import XML
from momentseek.recognition.captions.inputs import MomentParts, stack_moments
from momentseek.recognition.exported.captioner import CAPTION_KIND, MOMENTS_GRAPH, NEXT_WORD_GRAPH
from momentseek.recognition.exported.manifest import MANIFEST_FORMAT, EncoderRef, sources_of

COVERED_VIDEOS_SHARE = 0.95
"""Share of the training videos that fit into the longest window that a model reads at once."""
UNUSABLE = "this export cannot serve a library: "
PathLike = str | os.PathLike[str]


class MomentMemory(PartOfModel):
    """The encoder of a captioner, for its own graph."""

    model: MMT

    def forward(self, clips: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """(moments, clips, columns), (moments, rows) twice -> (moments, rows, hidden)."""
        return self.model.encode(clips, tokens, mask)


class NextWord(PartOfModel):
    """The decoder of a captioner, which scores the next word, for its own graph."""

    model: MMT

    def forward(self, memory: Tensor, mask: Tensor, begun: Tensor) -> Tensor:
        """(captions, rows, hidden), (captions, rows), (captions, words) -> (captions, vocabulary)."""
        return self.model.logits(memory, mask, begun)[:, -1]


def export_captioner(
    model: Captioner,
    name: str,
    out: Path,
    *,
    encoders: Mapping[str, EncoderRef] | None = None,
    clip_seconds: float = 1.5,
    trained: Mapping[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a captioner as a folder that ``recognition.exported`` runs without torch; the folder appears complete."""
    if not isinstance(model, MMT):
        raise MomentseekError(f"{name} cannot be exported yet; train mmt")
    was = model.training
    try:
        graphs, difference = draw(model)
    finally:
        model.train(was)
    values = {
        "format": MANIFEST_FORMAT,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "dims": {"video": model.dims.video, "vocabulary": list(model.dims.vocabulary)},
        "clip_seconds": clip_seconds,
        "encoders": {kind: dataclasses.asdict(source) for kind, source in (encoders or {}).items() if kind == "video"},
        "head": {"kind": CAPTION_KIND},
        "trained": dict(trained or {}),
    }
    return write_export(out, graphs, values, difference, force=force)


def draw(model: MMT) -> tuple[dict[str, bytes], float]:
    """Trace both graphs, and return them with their largest difference from torch."""
    rows = ("moments", "rows")
    moments = [_random_moments(model, clips, words) for clips, words in ((2, 3), (1, 1), (3, 2), (0, 1))]
    axes: Axes = {"clips": ("moments", "clips"), **dict.fromkeys(("tokens", "mask", "memory"), rows)}
    memory = trace(MomentMemory(model), moments[0], ("memory",), axes)
    begun = []
    for length, given in enumerate(moments, start=1):
        with torch.no_grad():
            encoded = model.encode(*given.values())
        words = torch.randint(len(model.vocabulary), (len(encoded), min(length, model.config.max_caption)))
        begun.append({"memory": encoded, "mask": given["mask"], "begun": words})
    axes = {"memory": rows, "mask": rows, "begun": ("moments", "words"), "logits": ("moments",)}
    following = trace(NextWord(model), begun[1], ("logits",), axes)
    difference = max(
        difference_from_torch(MomentMemory(model), memory, moments),
        difference_from_torch(NextWord(model), following, begun),
    )
    return {MOMENTS_GRAPH: memory, NEXT_WORD_GRAPH: following}, difference


def _random_moments(model: MMT, clips: int, words: int) -> Inputs:
    """Three moments of at most this many random clips and words, for the modalities that the model uses."""
    rng, known, prepared = np.random.default_rng(clips), model.vocabulary, model.config.preparation
    parts = [
        MomentParts(
            rng.standard_normal((max(0, clips - less) if prepared.sees else 0, model.dims.video), np.float32),
            tuple(rng.choice(known.words, max(0, words - less)).tolist()) if prepared.reads else (),
        )
        for less in range(3)
    ]
    found = stack_moments(parts, known, model.dims.video, prepared.modalities)
    given = {"clips": found.clips, "tokens": found.tokens, "mask": found.mask}
    return {name: torch.from_numpy(values) for name, values in given.items()}


@dataclass(frozen=True)
class FeatureSources:
    """What an export needs to know about a model's training data."""

    encoders: dict[str, EncoderRef] = field(default_factory=dict)
    clip_seconds: float = 1.5
    longest: float | None = None
    """Duration in seconds that nearly all training videos do not exceed."""
    median: float | None = None
    """Median duration of the training videos, in seconds."""
    missing: str = ""
    """Why the export cannot serve a library; empty if it can."""


def export_checkpoint(
    checkpoint: PathLike,
    out: PathLike,
    *,
    data: PathLike | None = None,
    window: float | None = None,
    force: bool = False,
) -> tuple[ExportReport, str | None]:
    """Export the model of a checkpoint as a folder.

    Returns the report, and why the export cannot serve a library: empty if it can, None for a captioner. ``data`` are
    the training data, if they were moved since. ``window`` is, for a model that stretches whole videos, the number of
    seconds that it reads at once.
    """
    if is_captioner(checkpoint):
        if window is not None:
            raise MomentseekError(
                f"a captioner is given moments, whatever their length; leave out {parameter('window')}"
            )
        return _export_captioner(checkpoint, Path(out), data, force), None
    loaded = load_checkpoint(checkpoint)
    training = loaded.config.training
    if window is not None:
        check_window(loaded.model, loaded.config.model)
    sources = _sources(data or loaded.config.data.path, loaded, asked=data is not None)
    report = export(
        loaded.model,
        loaded.config.model,
        Path(out),
        encoders=sources.encoders,
        clip_seconds=sources.clip_seconds,
        end_time=training.end_time,
        window=window or sources.longest,
        cut=None if window else sources.median,
        nms=training.nms,
        trained={"step": loaded.step, "measure": training.measure, **_origin(loaded)},
        force=force,
    )
    return report, sources.missing


def _export_captioner(checkpoint: PathLike, out: Path, data: PathLike | None, force: bool) -> ExportReport:
    loaded, sources = load_captioner(checkpoint), FeatureSources()
    try:
        with Data.open(data or loaded.config.data.path) as opened:
            sources = FeatureSources(sources_of(opened.path), opened.clip_seconds)
    except MomentseekError:
        if data is not None:
            raise
    return export_captioner(
        loaded.model,
        loaded.config.model,
        out,
        encoders=sources.encoders,
        clip_seconds=sources.clip_seconds,
        trained={"step": loaded.step, **_origin(loaded)},
        force=force,
    )


def _origin(loaded: SavedTraining) -> dict[str, object]:
    return {"value": loaded.value, "data": loaded.fingerprint, "version": loaded.version}


def _sources(folder: PathLike, trained: Checkpoint, *, asked: bool) -> FeatureSources:
    """Read the sources of the training data's features; without ``asked``, problems are returned in ``missing``."""
    if not folder:
        return FeatureSources(
            missing=f"{UNUSABLE}the checkpoint does not say where its data are; give {parameter('data', ...)}"
        )
    try:
        with Data.open(folder) as data:
            same = trained.imported or trained.was_trained_on(data)
            data.use(trained.model.config.modalities)
            split = trained.config.data.train
            if trained.imported:  # their training data are unknown, so compare widths only
                refuse_other_dims(trained, data, split if split in data.splits else data.splits[0], str(folder))
            known = same and split in data.splits
            found = FeatureSources(
                sources_of(data.path),
                data.clip_seconds,
                longest_video(data, split) if known else None,
                longest_video(data, split, 0.5) if known else None,
            )
    except MomentseekError as e:
        if asked:
            raise
        return FeatureSources(missing=f"{UNUSABLE}{e}")
    if not same:
        raise MomentseekError(
            f"{folder}: is not what the model was trained on; give those data ({parameter('data', ...)})"
        )
    if found.encoders:
        return found
    return replace(found, missing=f"{UNUSABLE}{folder} does not say which encoders made its features")


def check_window(model: CorpusModel, name: str) -> None:
    """Refuse a window for a model that does not stretch videos."""
    if isinstance(model, XML) or model.config.fit == "truncate":
        raise MomentseekError(
            f"{name} reads videos by at most {model.config.max_clips} clips at once and stretches none, so "
            f"{parameter('window')} changes nothing; leave it out"
        )


def longest_video(data: Data, split: str, share: float = COVERED_VIDEOS_SHARE) -> float:
    """Duration in seconds that ``share`` of the videos with a training moment do not exceed, in whole clips.

    The maximum would be misleading: one video of ten minutes among thousands of thirty seconds would make windows of
    ten minutes, for which a model's 16 clips are too coarse.
    """
    clips = [data.rows(name) for name in data.split(split).truth.videos] or [1]
    return data.clip_seconds * float(np.quantile(clips, share, method="higher"))
