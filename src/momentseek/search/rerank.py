"""Re-ranking: a trained model that reads query and video together re-ranks the best videos of a search.

The ordinary search chooses the videos. The model reads the stored vectors of each and the words of the query; its spans
become the moments, ranked by its score. The level of a moment stays that of the search: the model was trained to find
the moment in the right video, not to tell whether it is the right video.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from momentseek.core.ranking import suppress
from momentseek.library.catalog import Catalog
from momentseek.library.video import Video
from momentseek.recognition.exported.encoder import said_in_clips
from momentseek.recognition.exported.reranker import RerankedSpans, Reranker, VideoFeatures, warm_reranker
from momentseek.search.fusion import Candidate, drop_repeats, fit_spans
from momentseek.search.hit import StreamRank
from momentseek.search.localise.localiser import MAX_SPANS, Curve
from momentseek.search.state import LibraryState

RERANK_STREAM = "rerank"
"""The name of the model's rank and score among a hit's streams."""
DEFAULT_NMS_IOU = 0.5
"""The IoU above which the worse of two moments is dropped, if the model does not define one."""


def open_reranker(folder: str | os.PathLike[str], catalog: Catalog, clip_seconds: float) -> Reranker:
    """Open the exported model of a folder, cached in the process.

    A model that was trained on vectors other than those of this library is refused.
    """
    model = warm_reranker(folder)
    model.check_vectors(clip_seconds, catalog.encoder("vision"), catalog.encoder("speech"))
    return model


@dataclass(frozen=True, eq=False)
class RerankInput:
    """The input of a re-ranking model for a video, and what its moments are fitted to."""

    features: VideoFeatures | None
    """The features of the video in the model's format; None if its vectors are damaged."""
    curve: Curve | None
    """The curve of the ordinary search for the video."""
    duration: float


def read_input(state: LibraryState, model: Reranker, video: Video, curve: Curve | None, peak: float) -> RerankInput:
    """Read the input of a model for a video; ``peak`` is the time that the ordinary search chose in it."""
    read = read_features(state, model, video)
    if read is not None:
        read = replace(read, clip_scores=_clip_scores(curve, peak, len(read)))
    return RerankInput(read, curve, video.duration)


def rerank_videos(
    inputs: Mapping[int, RerankInput], model: Reranker, text: str, firsts: Iterable[Candidate]
) -> list[Candidate]:
    """The model's moments in some videos, best first.

    ``firsts`` are the best candidates of each video in the order of the search, ``inputs`` the inputs for each.
    """
    ranks = {one.video: (rank, one) for rank, one in enumerate(firsts, 1)}
    features = {id: read for id in ranks if id in inputs and (read := inputs[id].features) is not None}
    moments = []
    for id, spans in zip(features, model.spans(text, list(features.values())), strict=True):
        rank, first = ranks[id]
        curve, duration = inputs[id].curve, inputs[id].duration
        fitted = RerankedSpans(*fit_spans(spans.start, spans.end, duration), spans.score)
        for start, end, score in suppress_spans(fitted, model.about.nms):
            peak = (start + end) / 2 if curve is None else curve.peak(start, end)
            one = Candidate(id, start, end, peak, first=StreamRank(rank, first.score), model=model.name)
            one.levels["first"] = first.level
            one.score = score
            moments.append(one)
    return sorted(moments, key=lambda c: -c.score)  # ties: the better video first, then the model's order


def rank_reranked(moments: Iterable[Candidate]) -> list[Candidate]:
    """Rank the model's moments, without repetitions and with at most ``MAX_SPANS`` per video."""
    counts: Counter[int] = Counter()
    out: list[Candidate] = []
    for one in drop_repeats(moments):
        counts[one.video] += 1
        if counts[one.video] <= MAX_SPANS:
            out.append(one)
            one.ranks[RERANK_STREAM] = StreamRank(len(out), one.score)
    return out


def suppress_spans(spans: RerankedSpans, iou: float | None) -> list[tuple[float, float, float]]:
    """Start, end and score of the spans that do not overlap a better one by more than ``iou``."""
    stay = suppress(spans.start, spans.end, DEFAULT_NMS_IOU if iou is None else iou)
    columns = (spans.start[stay].tolist(), spans.end[stay].tolist(), spans.score[stay].tolist())
    return list(zip(*columns, strict=True))


def read_features(state: LibraryState, model: Reranker, video: Video) -> VideoFeatures | None:
    """The features of a video in the model's format, from the stored vectors; None if these are damaged."""
    about, vision, speech = model.about, state.vision, state.speech
    place = vision.place(video.id)
    if place is None:
        return None
    rows = vision.segments[place[0]].vectors(place[1])
    key: tuple[Hashable, ...] = (vision.segments[place[0]].name, place[1], video.duration)  # a name is a hash
    said = None
    if about.subtitle is not None:
        spoken = speech.place(video.id)
        vectors = None if spoken is None else speech.segments[spoken[0]].vectors(spoken[1])
        times = [(cue.start, cue.end) for cue in state.catalog.cues(video.id)]
        if vectors is not None and (len(vectors) != len(times) or not np.isfinite(vectors).all()):
            speech.damaged_videos.add(video.id)
            return None
        key += (spoken and (speech.segments[spoken[0]].name, spoken[1]), tuple(times))
        said = said_in_clips(times, vectors, len(rows), about.clip_seconds, about.subtitle.dim)
    if not len(rows) or not np.isfinite(rows).all():
        vision.damaged_videos.add(video.id)
        return None
    return VideoFeatures(rows if about.video is not None else None, said, video.duration, key)


def _clip_scores(curve: Curve | None, peak: float, clips: int) -> NDArray[np.float32] | None:
    """The scores of the ordinary search; the clip at ``peak``, which words may have found, gets the highest score."""
    if curve is None or len(curve) != clips:
        return None
    scores = curve.scores.copy()
    at = int(np.searchsorted(curve.edges, peak, side="right")) - 1
    scores[min(max(at, 0), clips - 1)] = curve.scores.max()
    return scores
