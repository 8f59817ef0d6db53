"""The curves of a query along one video, one per stream: what the page draws under the player."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from momentseek.api.library import Library
from momentseek.library.tracks.descriptions import description
from momentseek.library.tracks.readings import reading
from momentseek.library.video import Video
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.captions.scenes import SceneCaption
from momentseek.recognition.ocr.lines import ScreenLine
from momentseek.search.display import sought_words
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.hit import Hit
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import Query
from momentseek.search.state import StreamIndex
from momentseek.search.streams.vision import build_curve, build_vision_query

MAX_VIDEO_HITS = 50
"""Hits of one video that are given."""


@dataclass(frozen=True, eq=False)
class QueryCurves:
    """The curve of a query in each stream of a video, and the query's hits in it.

    ``edges`` are the bounds of the clips in seconds, one more than each stream has values.
    """

    edges: NDArray[np.float64]
    streams: dict[str, NDArray[np.float64]]
    hits: list[Hit]


def query_curves(
    library: Library,
    video: Video,
    query: Query,
    localiser: str = "",
    chosen: Sequence[Stream] = STREAMS,
    fusion: str = DEFAULT_FUSION,
) -> QueryCurves:
    """The curves of a query along a video in the chosen streams, and the query's hits in the video.

    Vision is the score of each clip's picture. Speech is how much of the query is said during each clip, from 0 to 1:
    the share of its words, or the similarity of meaning if that is higher. Text is the share of its words that is
    written in the picture, and described the share that a model says of the scene.
    """
    edges = clip_edges(video, library.clip_seconds)
    streams: dict[str, NDArray[np.float64]] = {}
    vision = _vision_curve(library, video, query) if "vision" in chosen else None
    if vision is not None:
        edges, streams["vision"] = vision
    cues = library.catalog.cues(video.id)
    if "speech" in chosen and cues and (query.speech_text or query.phrases):
        streams["speech"] = spread_over_clips(cues, _cue_scores(library, video, query, cues), edges)
    read = reading(library.catalog.of(video.id), video.id) if "text" in chosen and query.written_text else None
    if read is not None and read.lines:
        texts = [line.text for line in read.lines]
        shares = _word_shares(texts, content_words(query.written_text))
        streams["text"] = spread_over_clips(read.lines, shares, edges)
    told = (
        description(library.catalog.of(video.id), video.id) if "described" in chosen and query.described_text else None
    )
    if told is not None and told.captions:
        texts = [caption.text for caption in told.captions]
        shares = _word_shares(texts, content_words(query.described_text))
        streams["described"] = spread_over_clips(told.captions, shares, edges)
    here = replace(query, within=(_exact_glob(video.name),), outside=(), after=None, before=None)
    found = library.search(
        here, MAX_VIDEO_HITS, localiser=localiser or None, streams=tuple(chosen), all=True, fusion=fusion
    )
    return QueryCurves(edges, streams, [hit for hit in found if hit.video_id == video.id])


def clip_edges(video: Video, seconds: float) -> NDArray[np.float64]:
    """The bounds of a video's clips in seconds; the last is the end of the video."""
    edges = np.arange(max(1, video.clips) + 1, dtype=np.float64) * seconds
    if video.duration > edges[-2]:
        edges[-1] = video.duration
    return edges


def spread_over_clips(
    cues: Sequence[Cue | ScreenLine | SceneCaption], values: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The highest value of the cues or lines that overlap each clip; 0 where there are none.

    >>> spread_over_clips([Cue(1.0, 2.0, "a")], np.array([0.5]), np.array([0.0, 1.5, 3.0, 4.5])).tolist()
    [0.5, 0.5, 0.0]
    """
    out = np.zeros(len(edges) - 1)
    for cue, value in zip(cues, values.tolist(), strict=True):
        first = int(np.searchsorted(edges, cue.start, side="right")) - 1
        last = int(np.searchsorted(edges, cue.end, side="left"))
        first = min(max(first, 0), len(out) - 1)
        part = slice(first, max(first + 1, last))
        out[part] = np.maximum(out[part], value)
    return out


def _vision_curve(
    library: Library, video: Video, query: Query
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    usual = library.sampled_vision()
    if not query.picture_parts or not usual.clips:
        return None
    vision_query = build_vision_query(usual, query.picture_parts, query.avoid, library.encoders.vision.encode)
    snapshot = library.part_with(video.id).snapshot()
    index = StreamIndex(snapshot.vision, snapshot.gone, library.clip_seconds)
    scored = build_curve(index, vision_query, video)
    return None if scored is None else (scored.edges, scored.scores.astype(np.float64))


def _cue_scores(library: Library, video: Video, query: Query, cues: Sequence[Cue]) -> NDArray[np.float64]:
    share = _word_shares([cue.text for cue in cues], sought_words(query))
    snapshot = library.part_with(video.id).snapshot()
    rows = StreamIndex(snapshot.speech, snapshot.gone, library.clip_seconds).rows(video.id)
    encoder = library.encoders.speech if rows is not None and query.speech_text else None
    if rows is None or encoder is None:
        return share
    if len(rows) != len(cues):
        return share
    similarity = np.nan_to_num(np.clip(rows @ encoder.encode([query.speech_text])[0], 0.0, 1.0).astype(np.float64))
    return np.asarray(np.maximum(share, similarity))


def _word_shares(texts: Sequence[str], terms: Sequence[str]) -> NDArray[np.float64]:
    """The share of the terms that each text has."""
    found = WordMatcher(texts).matches(terms) if terms and texts else np.zeros((len(texts), 1), bool)
    return np.asarray(found.mean(axis=1))


def _exact_glob(name: str) -> str:
    """A glob that matches this name, whatever characters are in it.

    >>> _exact_glob("a[1].mp4")
    'a[[]1].mp4*'
    """
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in name)
    return escaped + "*"  # a star makes it a glob; other names that it matches are left out by id
