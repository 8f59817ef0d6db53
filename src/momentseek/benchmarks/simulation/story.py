"""Generate what happens: the scenes of every video, and the moments that get a caption.

A video has one to three scenes, each with a place, some of the show's people, and props. Moments take their people
and most of their objects from their scene, so that neighbouring moments share much and differ in their actions. The
annotated edges differ slightly from the action's: a moment may contain a little more or less than its caption says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from momentseek.benchmarks.simulation import settings as lengths
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.world import Show, World
from momentseek.core.moments.arrays import FloatArray, IntArray

NO_CONCEPT = -1
SECOND_ACTION_PROBABILITY = 0.3
NAMES_PLACE_PROBABILITY = 0.35
NAMES_COLOR_PROBABILITY = 0.4
MANNER_PROBABILITY = 0.4
PROMINENCE_PROBABILITIES = (0.1, 0.2, 0.7)
"""How often an action is hardly visible, at the edge of the picture, and prominent."""
PROP_PROBABILITY = 0.5
"""Probability that the object of an action is one of the scene's props."""
PROPS_PER_SCENE = 5
WHOLE_WORLD_MOMENTS = 10_000
"""Number of moments from which all concepts occur; a smaller corpus has fewer concepts, down to a quarter."""
ZIPF_EXPONENT = 0.4
"""The frequency of the n-th concept of a kind falls with n to this power."""


@dataclass(frozen=True, slots=True)
class SimulatedScene:
    """A part of a simulated video at one place, with its people and props (concept numbers)."""

    start: float
    end: float
    place: int
    people: tuple[int, ...]
    props: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SimulatedVideo:
    """A simulated video: its name, its length, and scenes that follow each other without gaps."""

    name: str
    seconds: float
    show: int
    scenes: tuple[SimulatedScene, ...]


class Event(NamedTuple):
    """What happens in a moment: concept numbers, ``NO_CONCEPT`` if there is none, and what the caption mentions.

    The second action follows the first; colour and manner belong to the first.
    """

    actor: int
    other: int
    action: int
    object: int
    color: int
    manner: int
    action2: int
    object2: int
    speech: int
    topic: int
    place: int
    names_place: int
    names_color: int
    prominence: int


@dataclass(frozen=True, eq=False)
class SimulatedMoments:
    """All simulated moments, one row each: the times, and the columns of the event.

    ``begin`` and ``finish`` are when the action itself happens; ``start`` and ``end`` the annotated times.
    """

    video: IntArray
    kind: IntArray
    start: FloatArray
    end: FloatArray
    begin: FloatArray
    finish: FloatArray
    actor: IntArray
    other: IntArray
    action: IntArray
    object: IntArray
    color: IntArray
    manner: IntArray
    action2: IntArray
    object2: IntArray
    speech: IntArray
    topic: IntArray
    place: IntArray
    names_place: IntArray
    names_color: IntArray
    prominence: IntArray

    def __len__(self) -> int:
        return len(self.video)

    def events(self) -> Iterator[Event]:
        """Return the events of all moments, row by row."""
        columns = (getattr(self, name).tolist() for name in Event._fields)
        return map(Event._make, zip(*columns, strict=True))


@dataclass(frozen=True, eq=False)
class Story:
    """All videos and moments of a corpus; the moments of video i are rows ``offsets[i]:offsets[i + 1]``."""

    videos: tuple[SimulatedVideo, ...]
    moments: SimulatedMoments
    offsets: IntArray
    unannotated: Story | None = None
    """What else happens in the same videos, without captions."""

    def parts(self) -> tuple[Story, ...]:
        """Return the story that captions describe, and what they leave out."""
        return (self,) if self.unannotated is None else (self, self.unannotated)


def tell_story(world: World, settings: SimulationSettings) -> Story:
    """Draw what happens in all videos of a corpus."""
    rng, changes = settings.random("story"), settings.changes
    seconds = lengths.draw_video_seconds(settings.total_videos, rng)
    counts = lengths.moments_per_video(seconds)
    times = _draw_times(seconds, counts, settings.difficulty.looseness, rng)
    chance = ConceptSampler(world, len(times.owner), rng)
    videos = tuple(_draw_video(i, float(s), world, chance) for i, s in enumerate(seconds))
    story = _tell(videos, times, counts, chance, repeats=changes.repeats)
    if not changes.unannotated:
        return story
    others = np.rint(counts * changes.unannotated).astype(np.int64)
    times = _draw_times(seconds, others, settings.difficulty.looseness, rng)
    return replace(story, unannotated=_tell(videos, times, others, chance, repeats=False))


class MomentTimes(NamedTuple):
    """Video, kind and times of moments, in order; see ``SimulatedMoments``."""

    owner: IntArray
    kind: IntArray
    start: FloatArray
    end: FloatArray
    begin: FloatArray
    finish: FloatArray


def _draw_times(seconds: FloatArray, counts: IntArray, looseness: float, rng: np.random.Generator) -> MomentTimes:
    owner = np.repeat(np.arange(len(seconds)), counts)
    kind = lengths.draw_kinds(len(owner), rng)
    start, end = lengths.draw_moment_times(kind, seconds[owner], rng)
    order = np.lexsort((end, start, owner))
    kind, start, end = kind[order], start[order], end[order]
    return MomentTimes(owner, kind, start, end, *_draw_action_times(start, end, seconds[owner], looseness, rng))


def _tell(
    videos: tuple[SimulatedVideo, ...], times: MomentTimes, counts: IntArray, chance: ConceptSampler, *, repeats: bool
) -> Story:
    """Draw the events of moments; with ``repeats``, most videos have an event that happens two or three times."""
    rows = [
        _draw_event(videos[v], (s + e) / 2, lengths.KINDS[k], chance)
        for v, s, e, k in zip(*(x.tolist() for x in (times.owner, times.start, times.end, times.kind)), strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if repeats:
        for first, last in pairwise(offsets.tolist()):
            again = [i for i in range(first, last) if times.kind[i] == times.kind[first]]
            for row in again[1 : 2 + int(chance.rng.integers(2))]:
                rows[row] = rows[first]._replace(place=rows[row].place)
    columns = np.array(rows, dtype=np.int64).T
    return Story(videos, SimulatedMoments(*times, *columns), offsets)


class ConceptSampler:
    """Draws concepts at random, some often and some rarely, like words in any language (Zipf)."""

    def __init__(self, world: World, moments: int, rng: np.random.Generator) -> None:
        self.world = world
        self.rng = rng
        share = min(1.0, max(0.25, moments / WHOLE_WORLD_MOMENTS))
        kinds = ("action", "speech", "topic", "color", "manner", "object")
        self.known = {kind: _first_share(rng.permutation(world.of_kind(kind)), share) for kind in kinds}
        order = rng.permutation(world.of_kind("object"))
        self.fitting = {
            action: _first_share(order[np.isin(order, found)], share) for action, found in world.objects_for.items()
        }

    def pick(self, among: IntArray) -> int:
        """Draw one of some concepts, the first more often than the last."""
        return int(among[np.searchsorted(_zipf_distribution(len(among)), self.rng.random(), side="right")])

    def some(self, among: tuple[int, ...], count: int) -> tuple[int, ...]:
        """Draw ``count`` distinct concepts, all equally likely."""
        return tuple(among[i] for i in self.rng.permutation(len(among))[:count].tolist())

    def happens(self, share: float) -> bool:
        """Draw whether something with this probability happens."""
        return bool(self.rng.random() < share)


@cache
def _zipf_distribution(count: int) -> FloatArray:
    """Return Zipf's distribution function over ``count`` concepts, without its last value, which is 1."""
    weights = 1 / (1 + np.arange(count)) ** ZIPF_EXPONENT
    result: FloatArray = np.cumsum(weights)[:-1] / weights.sum()
    return result


def _first_share(concepts: IntArray, share: float) -> IntArray:
    return concepts[: max(2, round(share * len(concepts)))]


def _draw_video(number: int, seconds: float, world: World, chance: ConceptSampler) -> SimulatedVideo:
    show = int(chance.rng.integers(len(world.shows)))
    series = world.shows[show]
    count = 1 + int(seconds > 20) * int(chance.happens(0.6)) + int(seconds > 40) * int(chance.happens(0.4))
    cuts = np.sort(chance.rng.uniform(0.1, 0.9, count - 1)) * seconds
    edges = [0.0, *cuts.tolist(), seconds]
    places = chance.some(series.places, count)
    scenes = tuple(_draw_scene(edges[i], edges[i + 1], places[i], series, chance) for i in range(count))
    name = f"{series.name}_s{number // 480 + 1:02d}e{number // 20 % 24 + 1:02d}_seg02_clip_{number % 20:02d}"
    return SimulatedVideo(name, seconds, show, scenes)


def _draw_scene(start: float, end: float, place: int, show: Show, chance: ConceptSampler) -> SimulatedScene:
    people = chance.some(show.cast, 2 + int(chance.rng.integers(3)))
    props = tuple(sorted({chance.pick(chance.known["object"]) for _ in range(PROPS_PER_SCENE)}))
    return SimulatedScene(start, end, place, people, props)


def _draw_event(video: SimulatedVideo, when: float, kind: str, chance: ConceptSampler) -> Event:
    """Draw one event of a kind, in the scene at that time."""
    scene = next(s for s in video.scenes if when < s.end or s is video.scenes[-1])
    actor, other = chance.some(scene.people, 2)
    action = thing = color = manner = action2 = thing2 = speech = topic = NO_CONCEPT
    if kind != "t":
        action, thing = _draw_action(scene, chance)
        color = NO_CONCEPT if thing == NO_CONCEPT else chance.pick(chance.known["color"])
        manner = chance.pick(chance.known["manner"]) if chance.happens(MANNER_PROBABILITY) else NO_CONCEPT
    if kind == "v" and chance.happens(SECOND_ACTION_PROBABILITY):
        action2, thing2 = _draw_action(scene, chance, but=action)
    if kind != "v":
        speech, topic = chance.pick(chance.known["speech"]), chance.pick(chance.known["topic"])
    needs_other = kind != "v" or action in chance.world.takes_two or action2 in chance.world.takes_two
    return Event(
        actor=actor,
        other=other if needs_other else NO_CONCEPT,
        action=action,
        object=thing,
        color=color,
        manner=manner,
        action2=action2,
        object2=thing2,
        speech=speech,
        topic=topic,
        place=scene.place,
        names_place=int(chance.happens(NAMES_PLACE_PROBABILITY)),
        names_color=int(color != NO_CONCEPT and chance.happens(NAMES_COLOR_PROBABILITY)),
        prominence=2
        if action == NO_CONCEPT
        else int(np.searchsorted(np.cumsum(PROMINENCE_PROBABILITIES)[:2], chance.rng.random())),
    )


def _draw_action(scene: SimulatedScene, chance: ConceptSampler, but: int = NO_CONCEPT) -> tuple[int, int]:
    while (action := chance.pick(chance.known["action"])) == but:
        pass
    fitting = chance.fitting[action]
    if not len(fitting):
        return action, NO_CONCEPT
    props = [o for o in scene.props if o in fitting]
    if props and chance.happens(PROP_PROBABILITY):
        return action, props[int(chance.rng.integers(len(props)))]
    return action, chance.pick(fitting)


def _draw_action_times(
    start: FloatArray, end: FloatArray, seconds: FloatArray, looseness: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw when the action happens: the annotated times, with each edge moved by a fraction of the length."""
    length = end - start
    moved = rng.standard_normal((2, len(start))).clip(-2, 2) * looseness * length
    begin = np.clip(start + moved[0], 0, None)
    finish = np.clip(end + moved[1], None, seconds)
    wrong = finish - begin < 0.4 * length
    return np.where(wrong, start, begin), np.where(wrong, end, finish)
