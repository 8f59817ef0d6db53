"""The scenes of the sample films, and queries about them.

In each scene of a film, a camera moves over one photograph, so the truth is known to the frame.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from momentseek.media.subtitles.cues import Cue


@dataclass(frozen=True)
class DemoScene:
    """A scene of a sample film: some seconds of one photograph or slide, and the words over it, if any."""

    photograph: str
    """Name of the photograph, or any unique name of a slide."""
    seconds: float
    said: str = ""
    written: str = ""
    """The lines of a slide, which is then shown instead of a photograph."""


@dataclass(frozen=True)
class DemoFilm:
    """A sample film: scenes one after the other, with hard cuts."""

    name: str
    scenes: tuple[DemoScene, ...]
    track: bool = False
    """Whether the subtitles are a track inside the file; otherwise they are an .srt file next to it."""
    voice: bool = False
    """Whether a synthetic voice speaks the words, without subtitles."""

    @property
    def seconds(self) -> float:
        """Length of the film, in seconds."""
        return sum(scene.seconds for scene in self.scenes)

    def times(self) -> Iterator[tuple[DemoScene, float, float]]:
        """Yield each scene with its start and end, in seconds.

        >>> [(scene.photograph, start, end) for scene, start, end in DEMO_FILMS[0].times()][:2]
        [('coffee', 0.0, 7.0), ('flower', 7.0, 12.0)]
        """
        start = 0.0
        for scene in self.scenes:
            yield scene, start, start + scene.seconds
            start += scene.seconds

    def interval(self, photograph: str) -> tuple[float, float]:
        """Return start and end of the scene that shows a photograph, in seconds."""
        return next((start, end) for scene, start, end in self.times() if scene.photograph == photograph)

    def cues(self) -> list[Cue]:
        """Return the words of the film as cues, each slightly inside its scene."""
        return [Cue(start + 0.4, end - 0.4, scene.said, "en") for scene, start, end in self.times() if scene.said]


def _film(about: dict[str, Any]) -> DemoFilm:
    return DemoFilm(**{**about, "scenes": tuple(DemoScene(**scene) for scene in about["scenes"])})


FILMS = tomllib.loads((files(__package__) / "films.toml").read_text(encoding="utf-8"))
DEMO_FILMS = tuple(map(_film, FILMS["films"]))
SPOKEN_FILM, SLIDE_FILM = _film(FILMS["spoken"]), _film(FILMS["slides"])


@dataclass(frozen=True)
class DemoQuery:
    """A question with the scene that answers it."""

    text: str
    film: str
    photograph: str

    @property
    def interval(self) -> tuple[float, float]:
        """Start and end of the scene that answers the question, in seconds."""
        films = (*DEMO_FILMS, SPOKEN_FILM, SLIDE_FILM)
        return next(film for film in films if film.name == self.film).interval(self.photograph)


DEMO_QUERIES = (
    DemoQuery("a cat looking at the camera", "sunday.mp4", "cat"),
    DemoQuery("a cup of coffee on a table", "sunday.mp4", "coffee"),
    DemoQuery("a motorcycle in a garage", "trip.mp4", "motorcycle"),
    DemoQuery("a rocket taking off", "lecture.mp4", "rocket"),
    DemoQuery("will they accept the old money", "trip.mp4", "coins"),
)
SENTENCE_QUERY = DemoQuery("a woman wearing a space suit", "lecture.mp4", "astronaut")
"""A query that the encoder of object labels cannot answer, because it has no label for it."""
SPOKEN_QUERY = DemoQuery("seats on the night train to Paris", SPOKEN_FILM.name, "brick")
SLIDE_QUERY = DemoQuery("the timetable of the harbour bridge", SLIDE_FILM.name, "slide")
