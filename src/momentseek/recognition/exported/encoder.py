"""A trained model as the library uses it: frames and cues in, contextual vectors out; queries in, vectors out.

For a clip there are two vectors. Those for ``match`` have length 1 and are what videos are ranked by: one part per
modality, each of length 1/sqrt(parts), so that the dot product with a query's is the mean of the modalities' cosines.
Those for ``spans`` are as long as the model makes them: their product with a query's is the curve on which the model's
filters find where a moment starts and ends.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import (
    ImageTextEncoder,
    Pixels,
    TextEncoder,
    Vectors,
    WordEncoder,
    fingerprint,
)
from momentseek.recognition.encoders.registry import MODEL_PREFIX, image_text_encoder, word_encoder
from momentseek.recognition.exported.manifest import (
    CLIPS_GRAPH,
    WORDS_GRAPH,
    EncoderManifest,
    EncoderRef,
    read_encoder_manifest,
)
from momentseek.recognition.exported.moment_map import windows
from momentseek.recognition.runtime import run_graph, session


def said_in_clips(
    times: Sequence[tuple[float, float]], vectors: Vectors | None, clips: int, clip_seconds: float, dim: int
) -> Vectors:
    """(clips, dim): row i is the mean over the cues that overlap ``[i, i + 1) * clip_seconds``; silence is zero.

    A cue of ``[start, end)`` counts for the clips floor(start / 1.5) to ceil(end / 1.5) - 1, as in TVR (appendix B),
    whose features take the maximum over the words; here a cue has one vector for all of it, of which means stay in the
    encoder's space and maxima do not.

    >>> rows = said_in_clips([(1.0, 2.0), (1.6, 2.9)], np.eye(2, dtype=np.float32), 3, 1.5, 2)
    >>> rows.tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]
    """
    rows = np.zeros((clips, dim), np.float32)
    if vectors is None or not len(vectors) or not clips:
        return rows
    start, end = np.asarray(times, np.float64).reshape(-1, 2).T
    first = np.clip(np.floor(start / clip_seconds).astype(np.int64), 0, clips)
    last = np.clip(np.maximum(np.ceil(end / clip_seconds).astype(np.int64), first + 1), 0, clips)
    size = np.maximum(last - first, 0)
    cue = np.repeat(np.arange(len(size)), size)
    clip = np.arange(len(cue)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(first, size)
    np.add.at(rows, clip, vectors[cue])
    count = np.bincount(clip, minlength=clips)[:, None]
    return np.asarray(rows / np.maximum(count, 1), np.float32)


QUERIES_PER_RUN = 32
"""Queries encoded in one run of the graph."""
MIN_VECTOR_LENGTH = 1e-6
CANDIDATES_PER_RUN = 1024
"""Candidates of a long video that are encoded at once, if a window has fewer."""


class TrainedEncoder:
    """An exported model. To the library it is an image-text encoder whose rows are made in two steps: ``frames``
    encodes pictures one by one, ``clips`` puts a whole video's into their context.
    """

    def __init__(self, about: EncoderManifest, threads: int | None = None) -> None:
        self.about = about
        self.name = f"{about.model} {about.fingerprint[:8]}"
        self.fingerprint = about.fingerprint
        self.dim = about.match
        self._threads = threads

    @cached_property
    def frames(self) -> ImageTextEncoder:
        """The encoder of frames whose vectors the model was trained on."""
        if self.about.video is None:
            raise MomentseekError(
                f"{self.about.folder}: the model sees no pictures, and a library is cut into clips by them; "
                "train one with modalities=video+subtitle"
            )
        encoder = image_text_encoder(self.about.video.spec)
        self._same(self.about.video, encoder)
        return encoder

    @cached_property
    def texts(self) -> WordEncoder:
        """The encoder of words whose vectors the model reads queries by."""
        encoder = word_encoder(self.about.query.spec)
        self._same(self.about.query, encoder)
        return encoder

    @property
    def short_side(self) -> int:
        """Pixels of the shorter side that the encoder of frames asks for."""
        return self.frames.short_side

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Always refused: a trained model encodes whole videos, not single images."""
        raise MomentseekError("a trained model encodes whole videos; pictures go through its .frames first")

    def check_speech(self, encoder: TextEncoder | None) -> None:
        """Refuse an encoder of cues that is not the one it was trained on."""
        if self.about.subtitle is None:
            return
        if encoder is None:
            raise MomentseekError(
                f"the model reads what is said by {self.about.subtitle.spec!r}, which is not here; "
                "get it with: momentseek models get"
            )
        self._same(self.about.subtitle, encoder)

    def clips(
        self, frames: Vectors, times: Sequence[tuple[float, float]], cues: Vectors | None
    ) -> tuple[Vectors, Vectors]:
        """A video's vectors for match and for spans, a row per frame: from its frames' rows, and its cues' times and
        rows.
        """
        about, said = self.about, None
        if about.subtitle is not None:
            said = said_in_clips(times, cues, len(frames), about.clip_seconds, about.subtitle.dim)
        return self.context(frames if about.video is not None else None, said)

    def context(self, video: Vectors | None, subtitle: Vectors | None) -> tuple[Vectors, Vectors]:
        """A video's vectors for match and for spans, from a row per clip of what is seen and of what is said,
        whichever the model takes.
        """
        about = self.about
        clips = max(len(rows) for rows in (video, subtitle) if rows is not None)
        match = np.empty((clips, about.match), np.float32)
        spans = np.empty((clips, about.spans), np.float32)
        for window in windows(clips, about.max_clips):
            part = slice(window.first, window.last)
            given: dict[str, Any] = {"mask": np.ones((1, window.last - window.first), np.bool_)}
            for name, features in (("video", video), ("subtitle", subtitle)):
                if features is not None:
                    given[name] = self._prepare(features[part], name)
            rows, curves = self._run(self._clips, ["match", "spans"], given)
            kept = slice(window.begin - window.first, window.end - window.first)
            match[window.begin : window.end], spans[window.begin : window.end] = rows[0, kept], curves[0, kept]
        return match, spans

    def span_rows(self, clips: int) -> int:
        """Number of rows for spans that a video of ``clips`` clips has: one per clip."""
        return clips

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries that videos are ranked by: a row of length 1 per query."""
        return self._encode_queries(texts, 0, self.about.match)

    def encode_spans(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries that spans are found by: a row of any length per query."""
        return self._encode_queries(texts, 1, self.about.spans)

    @property
    def for_spans(self) -> TextEncoder:
        """A text encoder whose ``encode`` is this model's ``encode_spans``."""
        return _ForSpans(self)

    def knows(self, text: str) -> bool:
        """Whether the model's encoder of words knows any word of a text."""
        own = getattr(self.texts, "knows", None)
        return True if own is None else bool(own(text))

    def queries(self, tables: Sequence[Vectors]) -> tuple[Vectors, Vectors]:
        """Vectors for match and for spans of queries that are given as tables of word features."""
        cut = [self.about.preparation.prepare_words(table[: self.about.max_words]) for table in tables]
        words = np.zeros((len(cut), max(map(len, cut)), self.about.query.dim), np.float32)
        mask = np.zeros(words.shape[:2], np.bool_)
        for i, table in enumerate(cut):
            words[i, : len(table)], mask[i, : len(table)] = table, True
        return self._run_words({"words": words, "mask": mask})

    def _run_words(self, given: dict[str, Any]) -> tuple[Vectors, Vectors]:
        match, spans = self._run(self._words, ["match", "spans"], given)
        return match, spans

    def _encode_queries(self, texts: Sequence[str], which: int, columns: int) -> Vectors:
        rows = [np.empty((0, columns), np.float32)]
        for at in range(0, len(texts), QUERIES_PER_RUN):
            rows.append(self.queries(self.texts.words(texts[at : at + QUERIES_PER_RUN]))[which])
        return np.concatenate(rows)

    def _prepare(self, rows: Vectors, modality: str) -> Vectors:
        return self.about.preparation.prepare_clips(rows, modality)[None]

    def _run(self, network: Any, outputs: list[str], given: dict[str, Any]) -> list[Vectors]:
        found = run_graph(network, outputs, given, self.about.folder)
        if not all(np.isfinite(rows).all() for rows in found):
            raise MomentseekError(f"{self.about.folder}: the model gave vectors that are not finite; train it anew")
        return found

    def _same(self, source: EncoderRef, encoder: TextEncoder) -> None:
        if (fingerprint(encoder) or encoder.name) != source.fingerprint:
            raise MomentseekError(
                f"{self.about.folder}: was trained on vectors of another {source.spec!r} than the one here; bring that "
                "back, or train the model on features of this one (momentseek data features)"
            )

    @cached_property
    def _clips(self) -> Any:
        return session(self.about.folder / CLIPS_GRAPH, self._threads)

    @cached_property
    def _words(self) -> Any:
        return session(self.about.folder / WORDS_GRAPH, self._threads)


class MomentMapEncoder(TrainedEncoder):
    """An exported model that keeps vectors of moments. Its rows for spans are those of the candidates, for matching and
    for overlap side by side and of length 1 together. A clip's row is the mean of those for matching of all the
    candidates of its window that it lies in: a clip by itself is what such a model knows least about.
    """

    def __init__(self, about: EncoderManifest, threads: int | None = None) -> None:
        super().__init__(about, threads)
        assert about.moments is not None
        self.moments = about.moments

    def span_rows(self, clips: int) -> int:
        """Number of rows for spans that a video of ``clips`` clips has: one per kept moment."""
        return len(self.moments.of(clips))

    def context(self, video: Vectors | None, subtitle: Vectors | None) -> tuple[Vectors, Vectors]:
        """Rows of the clips, and of the moments in the order of :meth:`MomentMap.of`."""
        clips = max(len(rows) for rows in (video, subtitle) if rows is not None)
        found = self.moments.windows(clips)
        match = np.empty((clips, self.about.match), np.float32)
        moments = np.empty((self.span_rows(clips), self.about.spans), np.float32)
        row, together = 0, max(1, CANDIDATES_PER_RUN // len(self.moments.start))
        for at in range(0, len(found), together):
            some = found[at : at + together]
            given = {
                name: np.concatenate([self._prepare(features[w.first : w.last], name) for w in some])
                for name, features in (("video", video), ("subtitle", subtitle))
                if features is not None
            }
            (made,) = self._run(self._clips, ["moments"], given)
            for window, rows in zip(some, made, strict=True):
                kept = self.moments.kept_candidates(window)
                moments[row : row + len(kept)] = rows[kept]
                row += len(kept)
                match[window.begin : window.end] = self.moments.clip_weights(window) @ rows[:, : self.about.match]
        lengths = np.linalg.norm(match, axis=1, keepdims=True)
        if not (lengths > MIN_VECTOR_LENGTH).all():
            raise MomentseekError(f"{self.about.folder}: the model's vectors cancel each other out; train it anew")
        return match / lengths, moments

    def _run_words(self, given: dict[str, Any]) -> tuple[Vectors, Vectors]:
        (spans,) = self._run(self._words, ["spans"], given)
        return spans[:, : self.about.match] * np.float32(np.sqrt(2)), spans


class _ForSpans:
    """A model's queries for spans, where an encoder is expected."""

    def __init__(self, model: TrainedEncoder) -> None:
        self._model = model
        self.name = model.name
        self.dim = model.about.spans

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Rows of any length."""
        return self._model.encode_spans(texts)


def load_trained_encoder(folder: str | os.PathLike[str], threads: int | None = None) -> TrainedEncoder:
    """The exported model of a folder."""
    about = read_encoder_manifest(Path(folder).expanduser().absolute())
    return (TrainedEncoder if about.moments is None else MomentMapEncoder)(about, threads)


def resolve_encoder(spec: str) -> ImageTextEncoder:
    """The encoder that ``spec`` names, loaded once per process: a trained model that ``momentseek export`` has written
    (``model:FOLDER``), or any that :func:`momentseek.recognition.encoders.registry.image_text_encoder` knows.
    """
    if spec.startswith(MODEL_PREFIX):
        return _load_once(spec.removeprefix(MODEL_PREFIX))
    return image_text_encoder(spec)


@cache
def _load_once(folder: str) -> TrainedEncoder:
    return load_trained_encoder(folder)
