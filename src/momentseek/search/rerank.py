"""Re-ranking: a trained model that reads query and video together looks again at the best videos of a search.

The ordinary search says which videos are worth it; of each, the vectors that the library keeps and the words of the
query go through the model, whose spans become the moments, ranked by its score. How sure a moment is stays what the
search said of its video: the model was trained to find the place in the right video, not to tell that it is the right
one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.trained.joint import Joint, Seen, Spans, load
from momentseek.encoders.trained.manifest import FILE, Source
from momentseek.encoders.trained.subtitles import said_in_clips
from momentseek.errors import MomentseekError
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.video import Video
from momentseek.ranking import suppress
from momentseek.search.fusion import Candidate
from momentseek.search.fusion import distinct as unlike
from momentseek.search.hit import Standing
from momentseek.search.inside import inside
from momentseek.search.localise.moment_map import peak
from momentseek.search.streams.moment_map import SPANS

if TYPE_CHECKING:
    from momentseek.search.gather import Search, State

STREAM = "rerank"
"""Under this name the model's rank and score stand among a hit's streams."""
NMS = 0.5
"""The overlap above which the worse of two moments is dropped, for a model that was trained without."""
KEPT = 8
"""Models kept warm, those asked for last."""
UNASKED = "the query says nothing that a picture could show, so the moments were not re-ranked"

Stamp = tuple[int, int, int]
_models: OrderedDict[Path, tuple[Stamp, Joint]] = OrderedDict()
_lock = threading.Lock()


def reranker(folder: str | os.PathLike[str], catalog: Catalog, clip_seconds: float) -> Joint:
    """The exported model of a folder, for this library; kept warm in the process, for all threads.

    A library whose vectors are not those the model was trained on is refused.
    """
    place = Path(os.path.abspath(Path(folder).expanduser()))
    with _lock:
        try:
            about = os.stat(place / FILE)
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        except OSError:
            stamp = (0, 0, 0)
        if place not in _models or _models[place][0] != stamp:
            model = load(place)
            model.warm()
            _models[place] = (stamp, model)
        _models.move_to_end(place)
        while len(_models) > KEPT:
            _models.popitem(last=False)
        found = _models[place][1]
    _check(found, catalog, clip_seconds)
    return found


def reranked(search: Search, candidates: Sequence[Candidate], model: Joint) -> list[Candidate]:
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
    shown: dict[int, Seen] = {}
    for id, (_, first) in firsts.items():
        seen = features(search.state, search.catalog, model, known[id])
        if seen is not None:
            shown[id] = replace(seen, worth=_worth(search, known[id], first, len(seen)))
    text = " ".join(part.text for part in search.query.seen)
    moments = []
    for id, spans in zip(shown, model.spans(text, list(shown.values())), strict=True):
        rank, first = firsts[id]
        standing = Standing(rank, first.score)
        wide = Spans(*inside(spans.start, spans.end, known[id].duration), spans.score)
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


def distinct(spans: Spans, nms: float | None) -> list[tuple[float, float, float]]:
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
        if counts[one.video] <= SPANS:
            out.append(one)
    return out


def features(state: State, catalog: Catalog, model: Joint, video: Video) -> Seen | None:
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
    return Seen(rows if about.video is not None else None, said, video.duration, key)


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
    return (start + end) / 2 if on is None else peak(on, start, end)


def _check(model: Joint, catalog: Catalog, clip_seconds: float) -> None:
    about = model.about
    if about.clip_seconds != clip_seconds:
        raise MomentseekError(
            f"{about.folder}: was trained on clips of {about.clip_seconds:g} s; the library's have {clip_seconds:g} s; "
            "train it on features of this library (momentseek data features)"
        )
    _same(model, "pictures", about.video, catalog.encoder("vision"))
    _same(model, "what is said", about.subtitle, catalog.encoder("speech"))


def _same(model: Joint, what: str, wanted: Source | None, found: EncoderRow | None) -> None:
    """Refuse vectors of another encoder; where the library has none of a kind, there is nothing to mistake."""
    if wanted is None or found is None or found.fingerprint == wanted.fingerprint:
        return
    raise MomentseekError(
        f"{model.about.folder}: was trained on vectors of {what} by {wanted.spec!r}, and the library's are by another "
        f"({found.name}); train it on features of this library (momentseek data features)"
    )
