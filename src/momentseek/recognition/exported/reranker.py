"""Re-rank with a trained model that reads query and video together: words and clips in, spans out.

Videos longer than those of training are read in windows that overlap by half, each like a separate video. A span counts
in the window whose middle is nearest to its own. Of many long videos only the most promising windows are read.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.language import load_parser
from momentseek.core.ranking import best_spans, moments_of
from momentseek.recognition.encoders.protocol import Vectors, WordEncoder, fingerprint
from momentseek.recognition.encoders.registry import word_encoder
from momentseek.recognition.exported.manifest import (
    JOINT_GRAPH,
    MANIFEST_FILE,
    SPANS_OUTPUT,
    TIMES_OUTPUTS,
    EncoderRef,
    RerankerManifest,
    read_reranker_manifest,
)
from momentseek.recognition.exported.moment_map import SEAM_TOLERANCE_CLIPS, ClipWindow, windows
from momentseek.recognition.exported.preparation import edges
from momentseek.recognition.runtime import run_graph, session

NO_SPAN_BELOW = -1e38
"""Lower scores mean that a span does not exist."""
MAX_WINDOWS = 200
"""Maximum number of windows per query; every video has at least one."""
REMEMBERED_VIDEOS = 2000
"""Number of (query, video) pairs with cached spans, some 5 kB each; makes the next page of a search free."""
WARM_RERANKERS_LIMIT = 8
"""Number of re-rankers kept loaded in a process, the most recently used."""
Times = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VideoFeatures:
    """A video's features: one row per clip of pictures and of speech, as the model needs them."""

    video: Vectors | None
    subtitle: Vectors | None
    duration: float
    key: Hashable = None
    """A cache key for these features; None to disable caching."""
    clip_scores: NDArray[np.float32] | None = None
    """Score of each clip, comparable across videos; it selects the windows to read if there are too many."""

    def __len__(self) -> int:
        return max(len(rows) for rows in (self.video, self.subtitle) if rows is not None)


@dataclass(frozen=True, eq=False)
class RerankedSpans:
    """The best spans of a video, best first."""

    start: Times
    end: Times
    score: NDArray[np.float32]


class VectorOrigin(Protocol):
    """The encoder of a library's vectors, as recorded in the library."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


class Reranker:
    """A trained model that scores the spans of a video for a query, run by ONNX Runtime.

    Its graph and its word encoder are loaded once, and the spans of recent queries are cached.
    """

    def __init__(self, about: RerankerManifest, threads: int | None = None) -> None:
        self.about = about
        self.name = f"{about.model} {about.fingerprint[:8]}"
        self._threads = threads
        self._known: OrderedDict[Hashable, RerankedSpans] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def texts(self) -> WordEncoder:
        """The word encoder of queries."""
        encoder = word_encoder(self.about.query.spec)
        self.check("queries", self.about.query, fingerprint(encoder) or encoder.name)
        return encoder

    def warm(self) -> None:
        """Load the graph and the word encoder now, to find missing or wrong ones early."""
        assert self.graph is not None
        assert self.texts is not None

    def check(self, what: str, source: EncoderRef, found: str) -> None:
        """Refuse vectors of another encoder than that of training."""
        if found != source.fingerprint:
            raise MomentseekError(
                f"{self.about.folder}: was trained on {what} by another {source.spec!r} than the one here; re-rank the "
                "library it was trained on, or train it on features of this one (momentseek data features)"
            )

    def check_vectors(self, clip_seconds: float, vision: VectorOrigin | None, speech: VectorOrigin | None) -> None:
        """Refuse a library whose clip length or encoders differ from the model's training data.

        Kinds of vectors that the library does not have are not checked.
        """
        about = self.about
        if about.clip_seconds != clip_seconds:
            raise MomentseekError(
                f"{about.folder}: was trained on clips of {about.clip_seconds:g} s; the library's have "
                f"{clip_seconds:g} s; train it on features of this library (momentseek data features)"
            )
        for what, wanted, found in (("pictures", about.video, vision), ("what is said", about.subtitle, speech)):
            if wanted is not None and found is not None and found.fingerprint != wanted.fingerprint:
                raise MomentseekError(
                    f"{about.folder}: was trained on vectors of {what} by {wanted.spec!r}, and the library's are by "
                    f"another ({found.name}); train it on features of this library (momentseek data features)"
                )

    def spans(self, text: str, videos: Sequence[VideoFeatures], limit: int = 200) -> list[RerankedSpans]:
        """Return the ``limit`` best spans of each video for a query by the model's score; recent ones are cached."""
        read = promising_windows(videos, self.about.window_clips)
        keys = [(text, limit, video.key, tuple(part)) for video, part in zip(videos, read, strict=True)]
        with self._lock:
            known = {at: self._known[key] for at, key in enumerate(keys) if key in self._known}
        new = [at for at in range(len(videos)) if at not in known]
        if new:
            words = self.texts.words([text])[0]
            found = self.spans_of(words, text, [videos[at] for at in new], limit, [read[at] for at in new])
            known |= zip(new, found, strict=True)
        with self._lock:
            for at, key in enumerate(keys):
                if videos[at].key is not None:
                    self._known[key] = known[at]
                    self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_VIDEOS:
                self._known.popitem(last=False)
        return [known[at] for at in range(len(videos))]

    def spans_of(
        self,
        words: Vectors,
        text: str,
        videos: Sequence[VideoFeatures],
        limit: int = 200,
        read: Sequence[Sequence[ClipWindow]] | None = None,
    ) -> list[RerankedSpans]:
        """Return the best spans of each video for a query's word features, from the windows ``read`` of each."""
        asked = self._query_inputs(words, text)
        parts: list[list[RerankedSpans]] = [[] for _ in videos]
        read = promising_windows(videos, self.about.window_clips) if read is None else read
        for video, windows_read, found in zip(videos, read, parts, strict=True):
            for window in windows_read:
                part = _part(video, window)
                if self.about.times:
                    found.append(self._best_times(video, window, self.times(asked, part), limit))
                else:
                    found.append(self._best(video, window, self.grid(asked, part), limit))
        return [_together(part, limit) for part in parts]

    def _query_inputs(self, words: Vectors, text: str) -> dict[str, Any]:
        rows = words[: self.about.max_words]
        if not len(rows):
            raise MomentseekError("the query has no words that could be encoded; say what to look for")
        asked: dict[str, Any] = {"words": np.ascontiguousarray(self.about.preparation.prepare_words(rows)[None])}
        if self.about.roles:
            parts = zip(
                ("roles", "phrase"), load_parser(self.about.parse)([text])[0].fit_to_features(len(words)), strict=True
            )
            asked |= {name: np.array([part[: len(rows)]], np.int64) for name, part in parts}
        return asked

    def grid(self, asked: Mapping[str, Any], part: Mapping[str, Vectors]) -> Vectors:
        """Return the scores of a window's spans by (first clip, length), minus infinity where there is no span."""
        size, (found,) = self._run((SPANS_OUTPUT,), asked, part)
        if np.isnan(found).any():
            raise self._divergence()
        return np.where(found[0] > NO_SPAN_BELOW, found[0], -np.inf)[:size]

    def times(self, asked: Mapping[str, Any], part: Mapping[str, Vectors]) -> RerankedSpans:
        """Return the moments of a window as fractions of its clips' duration, without those that do not exist."""
        _, found = self._run(TIMES_OUTPUTS, asked, part)
        start, end, score = (x[0] for x in found)
        there = ~(score <= NO_SPAN_BELOW)
        if not all(np.isfinite(x[there]).all() for x in (start, end, score)):
            raise self._divergence()
        return RerankedSpans(start[there].astype(np.float64), end[there].astype(np.float64), score[there])

    def _run(
        self, outputs: Sequence[str], asked: Mapping[str, Any], part: Mapping[str, Vectors]
    ) -> tuple[int, list[Vectors]]:
        """Return the number of rows of a window, and the graph's outputs for it, padded to the graph's input size."""
        about, given, size = self.about, dict(asked), 0
        for name, features in part.items():
            rows = about.preparation.prepare_clips(features, name)
            size = len(rows)
            given[name] = np.pad(rows, ((0, about.rows - size), (0, 0)))[None]
        given["mask"] = (np.arange(about.rows) < size)[None]
        taken = {name: given[name] for name in self._inputs}
        return size, run_graph(self.graph, list(outputs), taken, about.folder)

    def _divergence(self) -> MomentseekError:
        return MomentseekError(f"{self.about.folder}: the model's scores are no numbers; its training has diverged")

    def _best(self, video: VideoFeatures, window: ClipWindow, grid: Vectors, limit: int) -> RerankedSpans:
        """Return the best spans in a window's own part, in seconds of the video (as in ``models.inference``)."""

        about, clip = self.about, self.about.clip_seconds
        offset = window.first * clip
        left = video.duration - offset
        at = np.fmin(edges(window.last - window.first, about.max_clips, about.preparation.fit, clip, left), left)
        usable = int(np.count_nonzero(at[:-1] < at[-1]))
        last = np.add.outer(np.arange(grid.shape[0]), np.arange(grid.shape[1]) + about.shortest - 1)
        inside = last < usable
        if about.end_time == "start":
            inside &= last > np.arange(grid.shape[0])[:, None]  # a span of one clip would have no length
        begins, ends = window.begin * clip - offset, window.end * clip - offset
        if window.last < len(video) or window.first:
            beyond = np.minimum(last + 1, len(at) - 1)
            middle = (at[: grid.shape[0], None] + at[beyond]) / 2 + SEAM_TOLERANCE_CLIPS * clip
            inside &= (middle >= begins) & ((middle < ends) | (window.last == len(video)))
        found = best_spans(np.where(inside, grid, -np.inf), limit, about.shortest)
        real = found.score > -np.inf
        start, end = moments_of(found.first[real], found.last[real], at, 0, cast(Any, about.end_time))
        return RerankedSpans(start + offset, end + offset, np.asarray(found.score[real], np.float32))

    def _best_times(self, video: VideoFeatures, window: ClipWindow, found: RerankedSpans, limit: int) -> RerankedSpans:
        """Return the best moments in a window's own part, in seconds of the video and clipped to it."""

        about, clip = self.about, self.about.clip_seconds
        offset = window.first * clip
        left = video.duration - offset
        covered = edges(window.last - window.first, about.max_clips, about.preparation.fit, clip, left)[-1]
        start, end = (np.clip(x * covered, 0, np.fmin(covered, left)) + offset for x in (found.start, found.end))
        own = end > start
        if window.last < len(video) or window.first:
            middle = (start + end) / 2 + SEAM_TOLERANCE_CLIPS * clip
            own &= (middle >= window.begin * clip) & ((middle < window.end * clip) | (window.last == len(video)))
        order = np.flatnonzero(own)
        order = order[np.argsort(-found.score[order], kind="stable")][:limit]
        return RerankedSpans(start[order], end[order], found.score[order])

    @cached_property
    def graph(self) -> Any:
        """The exported network as an ONNX Runtime session."""
        return session(self.about.folder / JOINT_GRAPH, self._threads)

    @cached_property
    def _inputs(self) -> list[str]:
        return [i.name for i in self.graph.get_inputs()]


def promising_windows(videos: Sequence[VideoFeatures], clips: int, limit: int = MAX_WINDOWS) -> list[list[ClipWindow]]:
    """Return the windows of ``clips`` clips to read of each video: all, or the ``limit`` with the best clip scores.

    Every video keeps its best window; ties go to the earlier one.

    >>> scores = np.float32([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0])
    >>> film = VideoFeatures(np.zeros((12, 1), np.float32), None, 18.0, clip_scores=scores)
    >>> [(w.first, w.last) for w in promising_windows([film], 4)[0]]
    [(0, 4), (2, 6), (4, 8), (6, 10), (8, 12)]
    >>> [[(w.first, w.last) for w in part] for part in promising_windows([film, film], 4, 3)]
    [[(0, 4), (8, 12)], [(8, 12)]]
    """
    parts = [windows(len(video), clips) if len(video) else [] for video in videos]
    if sum(map(len, parts)) <= limit:
        return parts
    order: list[tuple[bool, float, int, int]] = []
    for i, (video, part) in enumerate(zip(videos, parts, strict=True)):
        scores = np.zeros(len(video), np.float32) if video.clip_scores is None else video.clip_scores
        best = [float(scores[w.begin : w.end].max(initial=-np.inf)) for w in part]
        first = int(np.argmax(best)) if best else 0
        order += [(at != first, -value, i, at) for at, value in enumerate(best)]
    chosen = sorted(order)[: max(limit, sum(map(bool, parts)))]
    kept = {(i, at) for _, _, i, at in chosen}
    return [[window for at, window in enumerate(part) if (i, at) in kept] for i, part in enumerate(parts)]


def _part(video: VideoFeatures, window: ClipWindow) -> dict[str, Vectors]:
    rows = slice(window.first, window.last)
    found = {"video": video.video, "subtitle": video.subtitle}
    return {name: features[rows] for name, features in found.items() if features is not None}


def _together(parts: Sequence[RerankedSpans], limit: int) -> RerankedSpans:
    """Join the windows' spans into one list; ties go to the earlier window."""
    if len(parts) == 1:
        return parts[0]
    empty = [np.zeros(0)] if not parts else []
    start, end = (np.concatenate([getattr(p, side) for p in parts] + empty) for side in ("start", "end"))
    score = np.concatenate([p.score for p in parts] + [e.astype(np.float32) for e in empty])
    order = np.argsort(-score, kind="stable")[:limit]
    return RerankedSpans(start[order], end[order], score[order])


def load_reranker(folder: str | os.PathLike[str], threads: int | None = None) -> Reranker:
    """Load the exported model of a folder."""
    return Reranker(read_reranker_manifest(Path(folder).expanduser().absolute()), threads)


def warm_reranker(folder: str | os.PathLike[str]) -> Reranker:
    """Return a folder's exported model, kept loaded for all threads; it is loaded again if the folder changes."""
    place = Path(os.path.abspath(Path(folder).expanduser()))
    with _loading:
        return _load_warm(place, _stamp(place / MANIFEST_FILE))


_loading = Lock()


@lru_cache(maxsize=WARM_RERANKERS_LIMIT)
def _load_warm(folder: Path, _: tuple[int, int, int]) -> Reranker:
    model = load_reranker(folder)
    model.warm()
    return model


def _stamp(file: Path) -> tuple[int, int, int]:
    """Return values that change when a file is rewritten; zeros if it does not exist."""
    try:
        status = os.stat(file)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
