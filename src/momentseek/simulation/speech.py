"""What people say in a simulated video, as lines with times: from the concepts that are spoken of in each clip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from momentseek.moments.arrays import IntArray
from momentseek.simulation.activity import spoken_concepts
from momentseek.simulation.settings import CLIP_SECONDS, SimulationSettings
from momentseek.simulation.story import Story
from momentseek.simulation.world import World

OPENINGS = {
    "tell": "listen , it is about the",
    "explain": "you have to understand the",
    "warn": "be careful with the",
    "remind": "do not forget the",
    "ask": "what about the",
    "tease": "ha , you and the",
    "argue": "no , I hate the",
    "consult": "what would you do about the",
}
"""How a line begins by the way of talking, which is never named in it."""
PLAIN_OPENING = "and then there is the"
FILLERS = ("well , you know .", "oh my god .", "come on .", "I do not know .", "right .", "really ?")


class SimulatedLine(NamedTuple):
    """A line that is said, with its times in seconds."""

    text: str
    start: float
    end: float


def spoken_lines(world: World, story: Story, settings: SimulationSettings) -> Iterator[tuple[str, list[SimulatedLine]]]:
    """The name and the lines of every video: of the same concepts as its subtitle features, in the same clips."""
    for number, film in enumerate(story.videos):
        strength = spoken_concepts(world, story, number, settings.difficulty, settings.random("subtitles", number))
        rng = settings.random("lines", number)
        yield film.name, _lines(world, [np.flatnonzero(row > 0) for row in strength], film.seconds, rng)


def _lines(world: World, spoken: list[IntArray], seconds: float, rng: np.random.Generator) -> list[SimulatedLine]:
    """One line for each stretch of clips in which the same is spoken of."""
    lines = []
    first = 0
    for clip in range(1, len(spoken) + 1):
        if clip < len(spoken) and np.array_equal(spoken[clip], spoken[first]):
            continue
        if len(spoken[first]):
            end = min(clip * CLIP_SECONDS, seconds)
            lines.append(SimulatedLine(_sentence(world, spoken[first], rng), first * CLIP_SECONDS, round(end, 2)))
        first = clip
    return lines


def _sentence(world: World, concepts: IntArray, rng: np.random.Generator) -> str:
    kinds: dict[str, list[int]] = {}
    for concept in concepts.tolist():
        kinds.setdefault(world.concepts[concept].kind, []).append(concept)
    speaker = f"{world.name(kinds['person'][0])} : " if "person" in kinds else ""
    speech = world.name(kinds["speech"][0]) if "speech" in kinds else None
    opening = OPENINGS[speech] if speech else PLAIN_OPENING
    things = [*kinds.get("topic", ()), *kinds.get("object", ())]
    if not things:
        return speaker + FILLERS[int(rng.integers(len(FILLERS)))]
    words = [world.concepts[thing].words for thing in things]
    return f"{speaker}{opening} " + " and the ".join(some[int(rng.integers(len(some)))] for some in words) + " ."
