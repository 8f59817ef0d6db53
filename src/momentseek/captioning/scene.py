"""Scenes of a video, and the small protocol by which any captioner describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from momentseek.captioning.moment_input import Floats

SHORTEST_SCENE = 4.0
"""Seconds below which a shot is described together with its neighbour."""
LONGEST_SCENE = 20.0
"""Seconds above which a shot is described in equal parts."""


@dataclass(frozen=True)
class SceneCaption:
    """What a model says of a scene; never what was said in it."""

    start: float
    end: float
    text: str
    by: str = ""
    """The model."""

    @property
    def at(self) -> float:
        """Time in seconds of the frame to show."""
        return (self.start + self.end) / 2


@dataclass(frozen=True, eq=False)
class Scene:
    """A stretch of a video to be described; what costs something is got when a captioner asks for it."""

    start: float
    end: float
    said: tuple[tuple[float, float, str], ...]
    """Start, end and text of what is said in it."""
    frames: Callable[[int], Sequence[bytes]]
    """Gives so many frames in order, as JPEG."""
    clips: Callable[[], tuple[Floats, float]]
    """Gives the vectors of all clips of the video, one row each, and the seconds of a clip."""


class SceneCaptioner(Protocol):
    """What describes scenes: an exported model, or a service."""

    @property
    def name(self) -> str:
        """What it is called beside its captions."""

    @property
    def fingerprint(self) -> str:
        """A hash that changes with what it says."""

    def describe_scene(self, scene: Scene) -> str:
        """One sentence about a scene; empty if it has nothing to say."""


def scene_spans(duration: float, cuts: Sequence[float]) -> list[tuple[float, float]]:
    """The scenes of a video by its cuts: short shots joined with what follows, long ones in equal parts.

    >>> scene_spans(50.0, [1.0, 8.0])
    [(0.0, 8.0), (8.0, 22.0), (22.0, 36.0), (36.0, 50.0)]
    """
    edges = [0.0]
    for cut in sorted(cuts):
        if cut - edges[-1] >= SHORTEST_SCENE and duration - cut >= SHORTEST_SCENE:
            edges.append(float(cut))
    out = []
    for start, end in pairwise([*edges, float(duration)]):
        parts = max(1, -int(-(end - start) // LONGEST_SCENE))
        times = [*(start + (end - start) * i / parts for i in range(parts)), end]
        out += list(pairwise(times))
    return [(start, end) for start, end in out if end > start]
