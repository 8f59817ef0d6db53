"""A trained model as an encoder of a library: it encodes frames and cues in context, and queries.

Each clip has two vectors. The ``match`` vectors rank videos: they have length 1, and one part per modality of length
1/sqrt(parts), so that the dot product with a query's vector is the mean of the modalities' cosines. The ``spans``
vectors have any length: their products with a query's vector form the curve on which the model's filters find where a
moment starts and ends.
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
    """Return (clips, dim): row i is the mean of the cues that overlap ``[i, i + 1) * clip_seconds``, zero for silence.

    A cue of ``[start, end)`` counts for the clips floor(start / 1.5) to ceil(end / 1.5) - 1, as in TVR (appendix B).
    TVR takes the maximum over words; here a cue has a single vector, and means stay in the encoder's space while maxima
    do not.

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
"""Number of queries per run of the graph."""
MIN_VECTOR_LENGTH = 1e-6
CLIPS_PER_RUN = 1024
"""Number of clips of a long video that are read at once, besides the overlap."""
CANDIDATES_PER_RUN = 1024
"""Number of candidates of a long video that are encoded together, if a window has fewer."""


class TrainedEncoder:
    """An exported model as an image-text encoder.

    Its rows are made in two steps: ``frames`` encodes single pictures, ``clips`` puts those of a video into context.
    """

    def __init__(self, about: EncoderManifest, threads: int | None = None) -> None:
        self.about = about
        self.name = f"{about.model} {about.fingerprint[:8]}"
        self.fingerprint = about.fingerprint
        self.dim = about.match
        self._threads = threads

    @cached_property
    def frames(self) -> ImageTextEncoder:
        """The image encoder of the model's training features."""
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
        """The word encoder of the model's queries."""
        encoder = word_encoder(self.about.query.spec)
        self._same(self.about.query, encoder)
        return encoder

    @property
    def short_side(self) -> int:
        """Shorter side in pixels that the image encoder uses."""
        return self.frames.short_side

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Always refused: a trained model encodes whole videos, not single images."""
        raise MomentseekError("a trained model encodes whole videos; pictures go through its .frames first")

    def check_speech(self, encoder: TextEncoder | None) -> None:
        """Refuse a text encoder of cues other than that of the model's training."""
        if self.about.subtitle is None:
            return
        if encoder is None:
            raise MomentseekError(
                f"the model reads what is said by {self.about.subtitle.spec!r}, which is not installed; "
                "get it with: momentseek models get"
            )
        self._same(self.about.subtitle, encoder)

    def clips(
        self, frames: Vectors, times: Sequence[tuple[float, float]], cues: Vectors | None
    ) -> tuple[Vectors, Vectors | None]:
        """Return a video's match and spans vectors, one row per frame, from the rows of its frames and cues.

        The spans vectors are None if the match vectors score spans too.
        """
        about, said = self.about, None
        if about.subtitle is not None:
            said = said_in_clips(times, cues, len(frames), about.clip_seconds, about.subtitle.dim)
        return self.context(frames if about.video is not None else None, said)

    def context(self, video: Vectors | None, subtitle: Vectors | None) -> tuple[Vectors, Vectors | None]:
        """Return a video's match and spans vectors, from one row per clip of pictures and of speech, as needed."""
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
        """Return the number of spans rows of a video of ``clips`` clips: one per clip."""
        return clips

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the match vectors of queries, which rank videos: one row of length 1 per query."""
        return self._encode_queries(texts, 0, self.about.match)

    def encode_spans(self, texts: Sequence[str]) -> Vectors:
        """Return the spans vectors of queries, which find spans: one row of any length per query."""
        return self._encode_queries(texts, 1, self.about.spans)

    @property
    def for_spans(self) -> TextEncoder:
        """Return a text encoder whose ``encode`` is this model's ``encode_spans``."""
        return _ForSpans(self)

    def knows(self, text: str) -> bool:
        """Whether the model's word encoder knows any word of a text."""
        own = getattr(self.texts, "knows", None)
        return True if own is None else bool(own(text))

    def queries(self, tables: Sequence[Vectors]) -> tuple[Vectors, Vectors]:
        """Return the match and spans vectors of queries given as tables of word features."""
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
            raise MomentseekError(f"{self.about.folder}: the model gave vectors that are not finite; train it again")
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
    """An exported model with vectors of moments.

    A spans row is a candidate's vectors for matching and for overlap, concatenated, of length 1. A clip's row is the
    mean of the matching vectors of all candidates of its window that contain it, since such a model is least accurate
    on single clips.
    """

    def __init__(self, about: EncoderManifest, threads: int | None = None) -> None:
        super().__init__(about, threads)
        assert about.moments is not None
        self.moments = about.moments

    def span_rows(self, clips: int) -> int:
        """Return the number of spans rows of a video of ``clips`` clips: one per kept moment."""
        return len(self.moments.of(clips))

    def context(self, video: Vectors | None, subtitle: Vectors | None) -> tuple[Vectors, Vectors]:
        """Return rows of the clips, and of the moments in the order of :meth:`MomentMap.of`."""
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
            raise MomentseekError(f"{self.about.folder}: the model's vectors cancel each other out; train it again")
        return match / lengths, moments

    def _run_words(self, given: dict[str, Any]) -> tuple[Vectors, Vectors]:
        (spans,) = self._run(self._words, ["spans"], given)
        return spans[:, : self.about.match] * np.float32(np.sqrt(2)), spans


class SpanEncoder(TrainedEncoder):
    """An exported model whose clip vectors also score spans (Slate), so that only these are stored.

    A clip's vector depends only on nearby clips, so a long video is read in parts that overlap by as many, with the
    same result.
    """

    def __init__(self, about: EncoderManifest, threads: int | None = None) -> None:
        super().__init__(about, threads)
        assert about.curves is not None
        self.head = about.curves

    def context(self, video: Vectors | None, subtitle: Vectors | None) -> tuple[Vectors, None]:
        """Return a video's match vectors, one row per clip, and no spans vectors."""
        given = {name: rows for name, rows in (("video", video), ("subtitle", subtitle)) if rows is not None}
        clips = max(map(len, given.values()))
        found = np.empty((clips, self.about.match), np.float32)
        for begin in range(0, clips, CLIPS_PER_RUN):
            end = min(begin + CLIPS_PER_RUN, clips)
            first, last = max(0, begin - self.head.halo), min(clips, end + self.head.halo)
            near = {name: self._prepare(rows[first:last], name) for name, rows in given.items()}
            (rows,) = self._run(self._clips, ["match"], near)
            found[begin:end] = rows[0, begin - first : end - first]
        return found, None

    def _run_words(self, given: dict[str, Any]) -> tuple[Vectors, Vectors]:
        (spans,) = self._run(self._words, ["spans"], given)
        what = spans[:, : self.about.match]
        return what / np.maximum(np.linalg.norm(what, axis=1, keepdims=True), MIN_VECTOR_LENGTH), spans


class _ForSpans:
    """A text encoder that returns a model's spans vectors of queries."""

    def __init__(self, model: TrainedEncoder) -> None:
        self._model = model
        self.name = model.name
        self.dim = model.about.spans

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return rows of any length."""
        return self._model.encode_spans(texts)


def load_trained_encoder(folder: str | os.PathLike[str], threads: int | None = None) -> TrainedEncoder:
    """Load the exported model of a folder."""
    about = read_encoder_manifest(Path(folder).expanduser().absolute())
    if about.curves is not None:
        return SpanEncoder(about, threads)
    return (TrainedEncoder if about.moments is None else MomentMapEncoder)(about, threads)


def resolve_encoder(spec: str) -> ImageTextEncoder:
    """Return the encoder for ``spec``, loaded once per process.

    It is a trained model written by ``momentseek export`` (``model:FOLDER``), or one of
    :func:`momentseek.recognition.encoders.registry.image_text_encoder`.
    """
    if spec.startswith(MODEL_PREFIX):
        return _load_once(spec.removeprefix(MODEL_PREFIX))
    return image_text_encoder(spec)


@cache
def _load_once(folder: str) -> TrainedEncoder:
    return load_trained_encoder(folder)
