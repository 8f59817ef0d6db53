"""Fusion: the streams' rankings made one, over moments.

Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a moment's score is the sum over the streams of

    weight · sureness / (60 + rank)

Ranks are used because the streams' scores have no common unit. Plain fusion gives the first of every stream the same
share, even of a stream that has nothing to do with the query; so a share also counts by how sure its stream is of the
moment (strong 1, fair 0.7, weak 0.4). A surer moment always goes first (0.2 is added for strong and 0.1 for fair, more
than any sum of shares), so that ranks never contradict levels, and weak moments only ever follow the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from momentseek.search.confidence import ORDER, together
from momentseek.search.hit import Level, Standing

K = 60
WEIGHTS = {"vision": 1.0, "speech": 1.0, "name": 0.5}
SURENESS: Mapping[Level, float] = {"strong": 1.0, "fair": 0.7, "weak": 0.4}
TIER = 0.1
"""What a level is worth; weak is worth nothing."""
SAME = 0.5
"""Share of the shorter of two stretches that must lie in the other for them to be one moment."""
INSIDE = 0.5
"""Share of the shorter of two moments that may lie in the other; else the worse is dropped (so IoU stays below too)."""


@dataclass(eq=False)
class Candidate:
    """A moment while it is being ranked; its bounds are one stream's, never a union of several."""

    video: int
    start: float
    end: float
    peak: float
    standings: dict[str, Standing] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The fused score."""
        return TIER * ORDER.index(self.level) + sum(
            WEIGHTS[name] * SURENESS[self.levels[name]] / (K + standing.rank)
            for name, standing in sorted(self.standings.items())
        )

    @property
    def level(self) -> Level:
        """How sure it is, by all streams that saw it."""
        return together(self.levels.values())

    def stand(self, stream: str, rank: int, score: float, level: Level) -> None:
        """Note how a stream saw it; the better of two ranks counts."""
        if stream not in self.standings or rank < self.standings[stream].rank:
            self.standings[stream] = Standing(rank, score)
            self.levels[stream] = level


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; ties by video and time, so that the same search always gives the same answer."""
    return sorted(candidates, key=lambda c: (-c.score, c.video, c.start, c.end))


def same(start: float, end: float, other_start: float, other_end: float) -> bool:
    """Whether two stretches of one video are about the same moment.

    >>> same(10, 12, 8, 20), same(0, 10, 9, 30)
    (True, False)
    """
    return _shared(start, end, other_start, other_end) >= SAME * min(end - start, other_end - other_start)


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that do not say again what a better one of the same video says.

    >>> one, two, three = (Candidate(1, *span, 0.0) for span in ((0, 10), (1, 10), (20, 30)))
    >>> [c.start for c in distinct([one, two, three])]
    [0, 20]
    """
    kept: dict[int, list[Candidate]] = {}
    out = []
    for one in candidates:
        if not any(_repeats(one, other) for other in kept.get(one.video, ())):
            kept.setdefault(one.video, []).append(one)
            out.append(one)
    return out


def _repeats(one: Candidate, other: Candidate) -> bool:
    shared = _shared(one.start, one.end, other.start, other.end)
    return shared > INSIDE * min(one.end - one.start, other.end - other.start)


def _shared(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start))
