"""Re-ranking: a trained model that reads query and video together looks again at the best videos of a search.

The ordinary search says which videos are worth it; of each, the vectors that the library keeps and the words of the
query go through the model, whose spans become the moments, ranked by its score. How sure a moment is stays what the
search said of its video: the model was trained to find the place in the right video, not to tell that it is the right
one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.video import Video
from momentseek.ranking import suppress
from momentseek.search.fusion import Candidate
from momentseek.search.fusion import distinct as unlike
from momentseek.search.hit import Standing
from momentseek.search.inside import inside
from momentseek.search.localise.localiser import MAX_SPANS
from momentseek.trained.reranker import RerankedSpans, Reranker, VideoFeatures, warm_reranker
from momentseek.trained.subtitles import said_in_clips

if TYPE_CHECKING:
    from momentseek.search.gather import Search, State

STREAM = "rerank"
"""Under this name the model's rank and score stand among a hit's streams."""
NMS = 0.5
"""The overlap above which the worse of two moments is dropped, for a model that was trained without."""
UNASKED = "the query says nothing that a picture could show, so the moments were not re-ranked"


def reranker(folder: str | os.PathLike[str], catalog: Catalog, clip_seconds: float) -> Reranker:
    """The exported model of a folder, kept warm in the process; refused if it was trained on other vectors than those
    of this library.
    """
    model = warm_reranker(folder)
    model.check_vectors(clip_seconds, catalog.encoder("vision"), catalog.encoder("speech"))
    return model


def reranked(search: Search, candidates: Sequence[Candidate], model: Reranker) -> list[Candidate]:
    """The model's moments in the first videos of a ranking, best first."""
    firsts: dict[int, tuple[int, Candidate]] = {}
    known = search.videos([c.video for c in candidates])
    contents: set[str] = set()
    for c in candidates:
        video = known.get(c.video)
        if c.video in firsts or video is None or video.duration <= 0 or (video.hash and video.hash in contents):
            continue
        if len(firsts) == search.options.rerank_videos:
            break
        contents.add(video.hash)
        firsts[c.video] = (len(firsts) + 1, c)
    shown: dict[int, VideoFeatures] = {}
    for id, (_, first) in firsts.items():
        seen = features(search.state, search.catalog, model, known[id])
        if seen is not None:
            shown[id] = replace(seen, worth=_worth(search, known[id], first, len(seen)))
    text = " ".join(part.text for part in search.query.seen)
    moments = []
    for id, spans in zip(shown, model.spans(text, list(shown.values())), strict=True):
        rank, first = firsts[id]
        standing = Standing(rank, first.score)
        wide = RerankedSpans(*inside(spans.start, spans.end, known[id].duration), spans.score)
        for start, end, score in distinct(wide, model.about.nms):
            one = Candidate(id, start, end, _peak(search, known[id], start, end), first=standing, model=model.name)
            one.levels["first"] = first.level
            one.score = score
            moments.append(one)
    moments.sort(key=lambda c: -c.score)  # of equals the one of the better video, then the model's order
    moments = _few(unlike(search.fitting(moments)))
    for rank, one in enumerate(moments, 1):
        one.standings[STREAM] = Standing(rank, one.score)
    return moments


def distinct(spans: RerankedSpans, nms: float | None) -> list[tuple[float, float, float]]:
    """Start, end and score of the spans that stay when each drops the worse ones that overlap it."""
    kept = suppress(spans.start, spans.end, NMS if nms is None else nms)
    columns = (spans.start[kept].tolist(), spans.end[kept].tolist(), spans.score[kept].tolist())
    return list(zip(*columns, strict=True))


def _few(moments: Sequence[Candidate]) -> list[Candidate]:
    """The best few of each video."""
    counts: Counter[int] = Counter()
    out = []
    for one in moments:
        counts[one.video] += 1
        if counts[one.video] <= MAX_SPANS:
            out.append(one)
    return out


def features(state: State, catalog: Catalog, model: Reranker, video: Video) -> VideoFeatures | None:
    """A video as the model was trained on it, from what the library keeps; None if its vectors are damaged."""
    about = model.about
    place = state.vision.place(video.id)
    if place is None:
        return None
    rows = state.vision.segments[place[0]].vectors(place[1])
    key: tuple[Hashable, ...] = (state.vision.segments[place[0]].name, place[1], video.duration)  # a name is a hash
    said = None
    if about.subtitle is not None:
        spoken = state.speech.place(video.id)
        vectors = None if spoken is None else state.speech.segments[spoken[0]].vectors(spoken[1])
        times = [(cue.start, cue.end) for cue in catalog.cues(video.id)]
        if vectors is not None and (len(vectors) != len(times) or not np.isfinite(vectors).all()):
            state.speech.broken.add(video.id)
            return None
        key += (spoken and (state.speech.segments[spoken[0]].name, spoken[1]), tuple(times))
        said = said_in_clips(times, vectors, len(rows), about.clip_seconds, about.subtitle.dim)
    if not len(rows) or not np.isfinite(rows).all():
        state.vision.broken.add(video.id)
        return None
    return VideoFeatures(rows if about.video is not None else None, said, video.duration, key)


def _worth(search: Search, video: Video, first: Candidate, clips: int) -> NDArray[np.float32] | None:
    """The search's own curve of a video; the place that it chose, which words may have told it, is as good as any."""
    on = search.curve(video)
    if on is None or len(on) != clips:
        return None
    worth = on.scores.copy()
    worth[min(max(int(np.searchsorted(on.edges, first.peak, side="right")) - 1, 0), clips - 1)] = on.scores.max()
    return worth


def _peak(search: Search, video: Video, start: float, end: float) -> float:
    on = search.curve(video)
    return (start + end) / 2 if on is None else on.peak(start, end)
