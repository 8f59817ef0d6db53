"""What happens in the sample films, and what to ask about them.

Each film is a row of scenes, a camera moving over one photograph each, so the truth is known to the frame. The films'
names say nothing of what they show: a search has to look, or to listen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from momentseek.media.subtitles.cues import Cue


@dataclass(frozen=True)
class DemoScene:
    """A scene of a sample film: some seconds of one photograph or slide, and the words over it, if any."""

    photograph: str
    """Name of the photograph; of a slide any name of its own."""
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
    """Whether the words are a track inside the file; otherwise they are next to it as .srt."""
    voice: bool = False
    """Whether the words are spoken by a synthetic voice, and there are no subtitles."""

    @property
    def seconds(self) -> float:
        """Length of the film, in seconds."""
        return sum(scene.seconds for scene in self.scenes)

    def times(self) -> Iterator[tuple[DemoScene, float, float]]:
        """Each scene with its start and end, in seconds.

        >>> [(scene.photograph, start, end) for scene, start, end in DEMO_FILMS[0].times()][:2]
        [('coffee', 0.0, 7.0), ('flower', 7.0, 12.0)]
        """
        start = 0.0
        for scene in self.scenes:
            yield scene, start, start + scene.seconds
            start += scene.seconds

    def interval(self, photograph: str) -> tuple[float, float]:
        """Start and end of the scene that shows a photograph, in seconds."""
        return next((start, end) for scene, start, end in self.times() if scene.photograph == photograph)

    def cues(self) -> list[Cue]:
        """The words of the film as cues, each a little inside its scene."""
        return [Cue(start + 0.4, end - 0.4, scene.said, "en") for scene, start, end in self.times() if scene.said]


DEMO_FILMS = (
    DemoFilm(
        "sunday.mp4",
        (
            DemoScene("coffee", 7.0),
            DemoScene("flower", 5.0, "She sent these for your birthday."),
            DemoScene("page", 6.0),
            DemoScene("cat", 8.0, "Somebody has been sleeping on my chair again."),
        ),
    ),
    DemoFilm(
        "trip.mp4",
        (
            DemoScene("temple", 9.0, "We walked all morning to get here."),
            DemoScene("motorcycle", 6.0),
            DemoScene("grass", 5.0),
            DemoScene("coins", 5.5, "I only have the old money left, will they take it?"),
        ),
    ),
    DemoFilm(
        "lecture.mp4",
        (
            DemoScene("moon", 6.0, "Nobody had been there before nineteen sixty-nine."),
            DemoScene("astronaut", 7.5),
            DemoScene("rocket", 9.0, "Three, two, one, and we have lift-off."),
            DemoScene("hubble", 6.5, "Every one of these specks is a galaxy."),
        ),
        track=True,
    ),
    DemoFilm(
        "workshop.mp4",
        (
            DemoScene("brick", 5.0),
            DemoScene("cameraman", 6.5, "Keep the tripod level and wait for the light."),
            DemoScene("gravel", 5.5),
        ),
    ),
)

SPOKEN_FILM = DemoFilm(
    "voices.mp4",
    (
        DemoScene("grass", 4.5, "The old lighthouse was sold to a painter last winter."),
        DemoScene("brick", 4.5, "Please book two seats on the night train to Paris."),
        DemoScene("gravel", 3.0),
    ),
    voice=True,
)
"""A film with sound and without subtitles: what is said in it has to be heard."""
SLIDE_FILM = DemoFilm(
    "meeting.mp4",
    (
        DemoScene("gravel", 5.0),
        DemoScene("slide", 7.0, written="Harbour bridge\nbudget and timetable"),
        DemoScene("brick", 5.0),
    ),
)
"""A film with a slide and without words: what is written in it has to be read."""


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
SPOKEN_QUERY = DemoQuery("seats on the night train to Paris", SPOKEN_FILM.name, "brick")
SLIDE_QUERY = DemoQuery("the timetable of the harbour bridge", SLIDE_FILM.name, "slide")
