"""An exported captioner: moments in, captions out, without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.recognition.captions.decoding import DecodingSettings, decode_captions
from momentseek.recognition.captions.inputs import (
    CaptionPreparation,
    MomentParts,
    SaidLine,
    Vocabulary,
    caption_words,
    stack_moments,
)
from momentseek.recognition.captions.scenes import Scene
from momentseek.recognition.exported.manifest import (
    MANIFEST_FILE,
    UNREADABLE_VALUES,
    EncoderRef,
    check_files,
    kind_of,
    read_values,
)
from momentseek.recognition.exported.reranker import VectorOrigin
from momentseek.recognition.runtime import session

CAPTION_KIND = "captions"
"""Kind of models that describe moments, in a manifest."""
MOMENTS_GRAPH, NEXT_WORD_GRAPH = "moments.onnx", "next_word.onnx"
MOMENTS_PER_RUN = 64


@dataclass(frozen=True)
class CaptionerManifest:
    """The manifest of an exported captioner."""

    folder: Path
    model: str
    fingerprint: str
    clip_seconds: float
    columns: int
    """Number of columns of a clip; 0 for a captioner without video input."""
    vocabulary: Vocabulary
    preparation: CaptionPreparation
    decoding: DecodingSettings
    video: EncoderRef | None
    """The image encoder of its training features, if the data name it."""


class PictureVectors(VectorOrigin, Protocol):
    """The encoder of a library's image vectors, and their number of columns."""

    @property
    def dim(self) -> int: ...


class ExportedCaptioner:
    """An exported captioner; its graphs are loaded at first use."""

    def __init__(self, folder: str | os.PathLike[str], threads: int | None = None) -> None:
        self.about = read_captioner_manifest(Path(folder))
        self.name = f"{self.about.model} {self.about.fingerprint[:8]}"
        self._threads = threads

    def describe(self, parts: Sequence[MomentParts], decoding: DecodingSettings | None = None) -> list[str]:
        """Return a caption for each moment, prepared by ``about.preparation``."""
        known, captions = self.about.vocabulary, []
        for first in range(0, len(parts), MOMENTS_PER_RUN):
            some = parts[first : first + MOMENTS_PER_RUN]
            inputs = stack_moments(some, known, self.about.columns, self.about.preparation.modalities)
            given = {"clips": inputs.clips, "tokens": inputs.tokens, "mask": inputs.mask}
            (memory,) = self._moments.run(["memory"], given)

            def next_words(
                rows: IntArray, begun: IntArray, memory: FloatArray = memory, mask: Any = inputs.mask
            ) -> FloatArray:
                (logits,) = self._next.run(["logits"], {"memory": memory[rows], "mask": mask[rows], "begun": begun})
                return log_softmax(logits)

            found = decode_captions(next_words, len(inputs), known, decoding or self.about.decoding)
            captions += [known.text(caption) for caption in found]
        return captions

    @property
    def fingerprint(self) -> str:
        """The hash of the model."""
        return self.about.fingerprint

    def check_vectors(self, clip_seconds: float, vision: PictureVectors | None) -> None:
        """Refuse a library whose clip length or encoder differs from the captioner's training data."""
        about = self.about
        if about.clip_seconds != clip_seconds:
            raise MomentseekError(
                f"{about.folder}: was trained on clips of {about.clip_seconds:g} s; the library's have "
                f"{clip_seconds:g} s; train it on features of this library (momentseek data features)"
            )
        if vision is None or not about.preparation.sees:
            return
        span = about.preparation.columns
        fits = about.columns == vision.dim if span is None else span[1] <= vision.dim
        if not fits or (about.video is not None and about.video.fingerprint != vision.fingerprint):
            wanted = f"by {about.video.spec!r}" if about.video is not None else f"with {about.columns:,} columns"
            raise MomentseekError(
                f"{about.folder}: was trained on vectors of pictures {wanted}, and the library's are by another "
                f"({vision.name}, {vision.dim:,} columns); train it on features of this library (momentseek data "
                "features), or describe with an endpoint"
            )

    def describe_scene(self, scene: Scene) -> str:
        """Return one sentence about a scene, from the vectors of its clips and what is said in it."""
        rows, seconds = scene.clips()
        lines = [SaidLine(start, end, caption_words(text)) for start, end, text in scene.said]
        part = self.about.preparation.part(scene.start, scene.end, rows, lines, seconds)
        if len(part.clips) and part.clips.shape[1] != self.about.columns:
            raise MomentseekError(
                f"{self.about.folder}: was trained on vectors of {self.about.columns:,} columns, not {rows.shape[1]:,}"
            )
        return self.describe([part])[0]

    @cached_property
    def _moments(self) -> Any:
        return session(self.about.folder / MOMENTS_GRAPH, self._threads)

    @cached_property
    def _next(self) -> Any:
        return session(self.about.folder / NEXT_WORD_GRAPH, self._threads)


def log_softmax(logits: FloatArray) -> FloatArray:
    """Return the log softmax of each row.

    >>> np.exp(log_softmax(np.array([[1.0, 1.0]]))).tolist()
    [[0.5, 0.5]]
    """
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return result


def read_captioner_manifest(folder: Path) -> CaptionerManifest:
    """Read the manifest of an exported captioner, and check the hashes of the files next to it."""
    values = read_values(folder)
    if kind_of(values) != CAPTION_KIND:
        raise MomentseekError(f"{folder}: {values.get('model')} finds moments and describes none; export a captioner")
    check_files(folder, values, (MOMENTS_GRAPH, NEXT_WORD_GRAPH))
    try:
        config, dims, encoders = values["config"], values["dims"], values["encoders"]
        span, plain = str(config["columns"] or ""), config.get("captions", "plain") == "plain"
        first, _, last = span.partition(":")
        return CaptionerManifest(
            folder=folder,
            model=str(values["model"]),
            fingerprint=str(values["fingerprint"]),
            clip_seconds=float(values["clip_seconds"]),
            columns=int(dims["video"]),
            vocabulary=Vocabulary(tuple(map(str, dims["vocabulary"]))),
            preparation=CaptionPreparation(
                modalities=str(config["modalities"]),
                max_clips=int(config["max_clips"]),
                max_words=int(config["max_words"]),
                end_clip=str(config["end_clip"]),
                columns=(int(first), int(last)) if span else None,
            ),
            decoding=DecodingSettings(
                int(config["beam"]), float(config["length_penalty"]), int(config["max_caption"]) + (not plain), plain
            ),
            video=EncoderRef.of(encoders["video"]) if "video" in encoders else None,
        )
    except UNREADABLE_VALUES:
        raise MomentseekError(f"{folder / MANIFEST_FILE}: lacks what a captioner must say; export it again") from None
