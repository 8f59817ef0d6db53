"""One search: what the streams find, gathered into moments, ranked, and chosen for showing.

The streams run on their own; their findings that lie on the same stretch of a video become one candidate, whose bounds
are those the picture gives. Then they are fused into one ranking, repetitions dropped, and levels decide what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from momentseek.library.catalog import Catalog
from momentseek.library.snapshot import Snapshot
from momentseek.library.video import Video
from momentseek.search.confidence import evidence
from momentseek.search.fusion import Candidate, distinct, ranked, same
from momentseek.search.hit import Hit
from momentseek.search.inside import inside
from momentseek.search.localise.localiser import MAP_LOCALISER, MAX_SPANS, Curve, localise
from momentseek.search.options import Options
from momentseek.search.query import Query
from momentseek.search.streams.exact import heard, said
from momentseek.search.streams.name import named
from momentseek.search.streams.sights import Encode, Ids, StreamIndex
from momentseek.search.streams.speech import listen
from momentseek.search.streams.stream_hit import StreamHit
from momentseek.search.streams.utterance import Utterance
from momentseek.search.streams.vision import DEPTH, Aim, Looked, aim, curve, look

CONTEXT = 6.0
"""Seconds before and after what is said in which the picture may set the bounds."""
UTTERANCES = 100
"""Of what is only said, so many enter the ranking."""
SMALL = 200
"""Clips (five minutes) below which the nearest hits are shown even if none is sure."""
NEAREST = 3
MUCH = 2.0
"""Spreads between two pictures that are much, where scores are fused."""
UNKNOWN = "the encoder of pictures knows no word of the query; ask in other words, or see docs/encoders.md"
DAMAGED = "some of the library's vectors are damaged; run momentseek verify"


@dataclass(eq=False)
class State:
    """What is kept while the library stays as it is."""

    snapshot: Snapshot
    vision: StreamIndex
    speech: StreamIndex
    videos: dict[int, Video] = field(default_factory=dict)


class Search:
    """One search while it runs."""

    def __init__(
        self,
        catalog: Catalog,
        encode: Callable[[str], Encode],
        knows: Callable[[str, Sequence[str]], bool],
        state: State,
        query: Query,
        options: Options,
        allowed: Ids | None,
    ) -> None:
        self.catalog, self.encode, self.knows, self.state = catalog, encode, knows, state
        self.query, self.options, self.allowed = query, options, allowed
        self.aim: Aim | None = None
        self.looked = Looked([], {})
        self.unknown = False
        """Whether the vision stream was asked in words that its encoder does not know."""
        self.unsaid: dict[int, list[tuple[float, float]]] = {}
        self.heard: list[Utterance] = []
        """Where the phrases of the query are said, word for word."""

    def candidates(self) -> list[Candidate]:
        """All that the streams found, ranked, without repetitions."""
        query, streams = self.query, self.options.streams
        utterances: list[Utterance] = []
        if query.phrases:  # word for word is a condition, whichever streams are asked
            utterances = self.heard = heard(self.catalog, query.phrases, self.allowed)
            self.allowed = np.unique(np.array([u.video for u in utterances], np.int64))
        if "vision" in streams and query.seen and len(self.state.vision.sample):
            self._look()
        if "speech" in streams and not query.phrases and query.spoken and not (query.names and not query.said):
            utterances = self._listen()
        found = self._merged(utterances)
        if query.phrases:
            found = [c for c in found if "speech" in c.standings]
        if "name" in streams and query.called and not query.phrases:
            self._lift(found)
        self.unsaid = said(self.catalog, query.unsaid, {c.video for c in found})
        return distinct(self._ranked(self._allowed_to_say(found)))

    def fitting(self, found: list[Candidate]) -> list[Candidate]:
        """Those in which what must be said is said, and nothing that must not be."""
        if self.query.phrases:
            found = [
                c for c in found
                if any(u.video == c.video and same(u.start, u.end, c.start, c.end) for u in self.heard)
            ]  # fmt: skip
        return self._allowed_to_say(found)

    def shown(self, candidates: list[Candidate]) -> tuple[list[Hit], int, str]:
        """The hits to show, how many weak ones are not, and what to say about it."""
        chosen = list(self._grouped(candidates))
        sure = [c for c in chosen if c.level != "weak"]
        k, note = self.options.k, ""
        if self.options.all:
            show = chosen[:k]
        elif sure:
            show = sure[:k]
        else:
            show = chosen[: min(k, NEAREST)] if self.state.vision.clips < SMALL and not self.unknown else []
            if chosen:
                note = "nothing matches well; these are the nearest" if show else "nothing matches well"
        if self.unknown:
            note = UNKNOWN
        if self.state.vision.damaged or self.state.speech.damaged:
            note = "; ".join(filter(None, (note, DAMAGED)))
        hits = [self._hit(rank, c) for rank, c in enumerate(self._bounded(show), 1)]
        return hits, max(0, min(k, len(chosen)) - len(show)), note

    def videos(self, ids: Sequence[int]) -> dict[int, Video]:
        """What is known of some videos; those that were just removed are missing."""
        known = self.state.videos
        new = [i for i in ids if i not in known]
        if new:
            known.update((video.id, video) for video in self.catalog.videos(new))
        return {i: known[i] for i in ids if i in known}

    def _look(self) -> None:
        """What an encoder makes of words that it does not know is like anything: of that nothing is sure."""
        query, vision = self.query, self.state.vision
        self.unknown = not self.knows("vision", [part.text for part in query.seen])
        spans = self.encode("spans") if vision.head or vision.moments else None
        self.aim = aim(vision, query.seen, query.avoid, self.encode("vision"), spans)
        page, depth = 2 * self.options.k, DEPTH
        if self.options.rerank is not None:  # then it is videos that are wanted
            page, depth = MAX_SPANS * self.options.rerank_videos, max(DEPTH, self.options.rerank_videos)
        while True:
            self.looked = look(vision, self.aim, self.videos, self.allowed, self.options.localiser, page, depth)
            by_map = (
                self.aim.moments is not None and self.options.localiser == MAP_LOCALISER
            )  # there a page changes nothing
            if by_map or len(self.looked.moments) < page or self._enough(self.looked.moments):
                break
            page *= 2
        if self.unknown:
            self.looked = Looked([replace(m, level="weak") for m in self.looked.moments], self.looked.curves)

    def _enough(self, moments: Sequence[StreamHit]) -> bool:
        """Whether moments fill a page once copies of a file, and others of the same video if so asked, are left out."""
        known = self.videos(list(dict.fromkeys(m.video for m in moments)))
        first: dict[str | int, int] = {}
        for id, video in known.items():
            first.setdefault(video.hash or id, id)
        if self.options.rerank is not None:
            return len(first) >= self.options.rerank_videos
        if self.options.group == "video":
            return len(first) >= self.options.k
        own = set(first.values())
        return sum(m.video in own for m in moments) >= self.options.k

    def _listen(self) -> list[Utterance]:
        speech = self.state.speech if len(self.state.speech.sample) else None
        if speech and not self.knows("speech", [self.query.spoken]):
            speech = None
        encode = self.encode("speech") if speech else None
        asked = bool(self.query.said)
        return listen(self.catalog, self.query.spoken, self.allowed, asked=asked, sights=speech, encode=encode)

    def _merged(self, utterances: Sequence[Utterance]) -> list[Candidate]:
        """What is seen and what is said; what lies on the same stretch is one candidate, with the picture's bounds."""
        out: list[Candidate] = []
        of_video: dict[int, list[Candidate]] = {}
        for rank, m in enumerate(self.looked.moments, 1):
            one = Candidate(m.video, *_inside(m.start, m.end, self.state.videos[m.video].duration), m.peak)
            one.stand("vision", rank, m.score, m.level)
            of_video.setdefault(m.video, []).append(one)
            out.append(one)
        known = self.videos([u.video for u in utterances[:UTTERANCES]])
        for rank, u in enumerate(utterances, 1):
            if u.video not in known and u.video not in of_video:
                continue
            others = of_video.setdefault(u.video, [])
            found = next((c for c in others if same(u.start, u.end, c.start, c.end)), None)
            if found is None and rank > UTTERANCES:
                continue
            if found is None:
                start, end = _inside(u.start, u.end, known[u.video].duration)
                found = Candidate(u.video, start, end, (start + end) / 2)
                others.append(found)
                out.append(found)
            found.stand("speech", rank, u.score, u.level)
        return out

    def _bounded(self, chosen: list[Candidate]) -> list[Candidate]:
        """Moments that are only said, as the picture bounds them near the words, if it shows anything there.

        Done last, and only for what is shown. A moment that would then say again what another says, or hold words that
        must not be said, keeps the time of its words.
        """
        out: list[Candidate] = []
        for at, c in enumerate(chosen):
            wider = self._pictured(c) if "vision" not in c.standings and "speech" in c.standings else None
            others = [o for o in (*out, *chosen[at + 1 :]) if o.video == c.video]
            fits = wider is not None and len(distinct([*others, wider])) > len(others) and self._allowed_to_say([wider])
            out.append(wider if wider is not None and fits else c)
        return out

    def _pictured(self, said: Candidate) -> Candidate | None:
        on = self.curve(self.state.videos[said.video])
        if self.aim is None or on is None:
            return None
        near = on.around(said.start, said.end, CONTEXT)
        if self.aim.scale.z(float(near.scores.max())) <= 1:
            return None
        spans = localise(near, self.options.localiser)
        starts, ends = inside(spans.start, spans.end, self.state.videos[said.video].duration)
        for start, end, peak in zip(starts.tolist(), ends.tolist(), spans.peak.tolist(), strict=True):
            covers = min(end, said.end) - max(start, said.start) >= (said.end - said.start) / 2
            if covers and self.aim.scale.z(evidence(on.scores_within(start, end))) > 1:
                return replace(said, start=start, end=end, peak=peak)
        return None

    def curve(self, video: Video) -> Curve | None:
        """The vision stream's curve of any video."""
        if self.aim is None:
            return None
        if video.id not in self.looked.curves:
            made = curve(self.state.vision, self.aim, video)
            if made is None:
                return None
            self.looked.curves[video.id] = made
        return self.looked.curves[video.id]

    def _lift(self, found: list[Candidate]) -> None:
        """Let names count for the best moment of their video."""
        names = named(self.catalog, self.query.called, self.allowed)
        known = self.videos([n.video for n in names])
        best = {c.video: c for c in reversed(self._ranked(found))}
        for rank, n in enumerate(names, 1):
            if n.video not in known:
                continue
            one = best.get(n.video)
            if one is None:
                one = self._best_of(known[n.video])
                found.append(one)
            one.stand("name", rank, n.score, n.level)

    def _ranked(self, found: Sequence[Candidate]) -> list[Candidate]:
        units = {"vision": MUCH * self._spread(self.aim)} if self.aim else {}
        return ranked(found, self.options.fusion, units)

    def _spread(self, target: Aim) -> float:
        """Of the scores by which moments are ranked."""
        by_map = target.moments is not None and self.options.localiser == MAP_LOCALISER
        return target.moments.spread if by_map and target.moments else target.scale.spread

    def _best_of(self, video: Video) -> Candidate:
        """The best span of a video that was not among the best, or all of it where nothing is looked for."""
        on = self.curve(video)
        if on is None:
            return Candidate(video.id, 0.0, video.duration, video.duration / 2)
        spans = localise(on, self.options.localiser, limit=1)
        return Candidate(video.id, float(spans.start[0]), float(spans.end[0]), float(spans.peak[0]))

    def _allowed_to_say(self, found: list[Candidate]) -> list[Candidate]:
        """Without the moments in which something is said that must not be."""
        return [c for c in found if not any(s < c.end and c.start < e for s, e in self.unsaid.get(c.video, ()))]

    def _grouped(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """One of several files with the same content; and, if so asked, one moment per video."""
        known = self.videos([c.video for c in candidates])
        chosen: dict[str, int] = {}
        seen: set[int] = set()
        for c in candidates:
            if c.video not in known or known[c.video].duration <= 0:
                continue
            content = known[c.video].hash
            if content and chosen.setdefault(content, c.video) != c.video:
                continue
            if self.options.group == "video" and c.video in seen:
                continue
            seen.add(c.video)
            yield c

    def _hit(self, rank: int, c: Candidate) -> Hit:
        video = self.state.videos[c.video]
        start, end = _inside(c.start, c.end, video.duration)
        on = self.curve(video) if self.options.explain else None
        return Hit(
            rank,
            video.id,
            video.path,
            video.name,
            start,
            end,
            c.score,
            c.level,
            min(max(c.peak, start), end),
            video.duration,
            video.rate,
            tuple(cue for cue in self.catalog.cues(video.id) if cue.start < end and start < cue.end),
            dict(c.standings),
            () if on is None else tuple(on.scores.tolist()),
            self.catalog.copies(video),
            video.width or None,
            video.height or None,
            video.audio,
            c.first,
            c.model,
        )


def _inside(start: float, end: float, duration: float) -> tuple[float, float]:
    """A span inside its video and not too short to be looked at.

    >>> _inside(9.9, 12.0, 10.0), _inside(3.0, 3.0, 10.0)
    ((9.5, 10.0), (2.75, 3.25))
    """
    starts, ends = inside(start, end, duration)
    return float(starts), float(ends)
