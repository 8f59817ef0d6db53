"""Generate features: fixed random vectors per concept, mixed by what happens, with style, cross-talk and noise.

Clips are in one space, words (of queries and subtitles) in another; a model has to learn which vectors belong
together. With strengths :math:`a_{tk}` of concept k in clip t (``activity``), concept vectors :math:`v_k`, the
style u of the video and :math:`w_s` of the scene, and cross-talk c:

.. math:: x_t = (1-2c)\\, y_t + c\\,(y_{t-1} + y_{t+1}) + \varepsilon_t, \\qquad
          y_t = \\sum_k a_{tk} v_k + u + w_{s(t)}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.simulation.settings import CLIP_SECONDS, Difficulty, SimulationSettings
from momentseek.benchmarks.simulation.story import NO_CONCEPT, SimulatedMoments, Story
from momentseek.benchmarks.simulation.world import VOCABULARY, TaggedText, World
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray

ACTION_STRENGTH, OBJECT_STRENGTH, COLOR_STRENGTH, MANNER_STRENGTH, PERSON_STRENGTH, GENDER_STRENGTH, IDLE_STRENGTH = (
    1.0,
    0.8,
    0.5,
    0.5,
    0.4,
    0.3,
    0.5,
)
TOPIC_STRENGTH, SPEECH_STRENGTH, SPEAKER_STRENGTH, MENTION_STRENGTH = 1.0, 0.6, 0.3, 0.5
PROMINENCE_STRENGTHS = (0.1, 0.6, 1.0)
"""Strengths of an action that is hardly visible, at the edge of the picture, or prominent."""
MOTION_KINDS = ("action", "manner", "idle")
"""Kinds of concepts shown by features of motion, if the two kinds of features are separate."""
OTHER_STREAM_STRENGTH = 0.3
"""Strength of motion in features of things, and of things in features of motion, relative to 1 for their own."""
SILENCE_PROBABILITY = 0.3
"""Probability that nobody speaks in a clip outside spoken moments."""


def clip_count(seconds: float) -> int:
    """Return the number of clips of a video; the last one may be incomplete.

    >>> clip_count(61.46), clip_count(3.0)
    (41, 2)
    """
    return max(1, math.ceil(round(seconds / CLIP_SECONDS, 6)))


def clip_shares(clips: int, start: float, end: float) -> FloatArray:
    """Return the fraction of every clip that is between two times.

    >>> clip_shares(4, 1.5, 3.75).tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    edges = np.arange(clips) * CLIP_SECONDS
    shared = np.minimum(edges + CLIP_SECONDS, end) - np.maximum(edges, start)
    result: FloatArray = np.clip(shared / CLIP_SECONDS, 0, 1)
    return result


def visible_concepts(
    world: World, story: Story, video: int, difficulty: Difficulty, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the strength of every visible concept, ``(clips, concepts)``, and each clip's share of every scene."""
    film = story.videos[video]
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    scenes = np.stack([clip_shares(clips, s.start, s.end) for s in film.scenes], axis=1)
    for share, scene in zip(scenes.T, film.scenes, strict=True):
        strength[:, scene.place] += 2 * difficulty.scenery * share
        for concept in (*scene.people, *scene.props):
            strength[:, concept] += difficulty.scenery / 2 * share
    busy = np.zeros(clips)
    for part in story.parts():
        for row in range(int(part.offsets[video]), int(part.offsets[video + 1])):
            busy = np.maximum(busy, _show_event(world, part.moments, row, strength))
    idle = rng.choice(world.of_kind("idle"), clips)
    strength[np.arange(clips), idle] += IDLE_STRENGTH * (1 - busy)
    return strength, scenes


def _show_event(world: World, m: SimulatedMoments, row: int, strength: FloatArray) -> FloatArray:
    """Add the visible concepts of event ``m[row]`` to ``strength`` (clips, concepts), in place.

    Returns the share of each clip's time that the event takes; all 0 if the event has no action.
    """
    clips = len(strength)
    begin, finish = float(m.begin[row]), float(m.finish[row])
    share = clip_shares(clips, begin, finish)
    for person in (int(m.actor[row]), int(m.other[row])):
        if person != NO_CONCEPT:
            strength[:, person] += PERSON_STRENGTH * share
            strength[:, world.gender[person]] += GENDER_STRENGTH * share
    if m.action[row] == NO_CONCEPT:
        return np.zeros(clips)
    halves = [(int(m.action[row]), int(m.object[row]), begin, finish)]
    if m.action2[row] != NO_CONCEPT:
        middle = (begin + finish) / 2
        second = (int(m.action2[row]), int(m.object2[row]), middle, finish)
        halves = [(*halves[0][:2], begin, middle), second]
    clear = PROMINENCE_STRENGTHS[m.prominence[row]]
    for detail, weight in ((int(m.color[row]), COLOR_STRENGTH), (int(m.manner[row]), MANNER_STRENGTH)):
        if detail != NO_CONCEPT:
            strength[:, detail] += clear * weight * clip_shares(clips, halves[0][2], halves[0][3])
    for action, thing, since, until in halves:
        part = clear * clip_shares(clips, since, until)
        strength[:, action] += ACTION_STRENGTH * part
        if thing != NO_CONCEPT:
            strength[:, thing] += OBJECT_STRENGTH * part
    return share


def spoken_concepts(
    world: World, story: Story, video: int, settings: SimulationSettings, rng: np.random.Generator
) -> FloatArray:
    """Return the strength of every spoken concept per clip, ``(clips, concepts)``; a row of zeros is silence."""
    film, difficulty, changes = story.videos[video], settings.difficulty, settings.changes
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    if not changes.subtitles:
        return strength
    for part in story.parts():
        m = part.moments
        for row in range(int(part.offsets[video]), int(part.offsets[video + 1])):
            share = clip_shares(clips, float(m.begin[row]), float(m.finish[row]))
            if m.topic[row] != NO_CONCEPT:
                strength[:, m.topic[row]] += TOPIC_STRENGTH * share
                strength[:, m.speech[row]] += SPEECH_STRENGTH * share
                strength[:, m.actor[row]] += SPEAKER_STRENGTH * share
            elif m.object[row] != NO_CONCEPT and rng.random() < changes.mentions:
                strength[:, m.object[row]] += MENTION_STRENGTH * share
    if changes.speech_lag:
        lag = min(clips - 1, 1 + int(rng.integers(changes.speech_lag)))
        strength = np.concatenate([np.zeros((lag, strength.shape[1])), strength[: clips - lag]])
    loud = (strength > 0).sum(axis=1) > 0
    speakers = [scene.people for scene in film.scenes]
    topics = world.of_kind("topic")
    now = int(rng.choice(topics))
    for clip in np.flatnonzero(~loud | (rng.random(clips) < difficulty.chatter)).tolist():
        if not loud[clip] and rng.random() < SILENCE_PROBABILITY:
            continue
        if rng.random() < 0.3:
            now = int(rng.choice(topics))
        scene = min(int(np.searchsorted([s.end for s in film.scenes], clip * CLIP_SECONDS)), len(speakers) - 1)
        strength[clip, speakers[scene][int(rng.integers(len(speakers[scene])))]] += SPEAKER_STRENGTH
        if rng.random() < difficulty.chatter:
            strength[clip, now] += TOPIC_STRENGTH / 2
    return strength


Features = NDArray[np.float32]
SYNONYM_COSINE = 0.6
"""Cosine of the vectors of two words for one concept."""
FILLER_WORDS = 12
"""Number of words that are said whatever the topic."""
FILLER_STRENGTH = 0.4
NEIGHBOUR_WORDS = 2
"""Number of words on either side that are mixed into a query's word."""
SERIES_ROTATION = 0.25
"""How far a series rotates all visual vectors, per unit of ``Variant.event_variance``."""
GAIN_SPREAD, LOST_CLIPS = 0.3, 0.2
"""Spread of the logarithm of a clip's gain, and share of clips that are noise, for ``Variant.camera``."""


@dataclass(frozen=True, eq=False)
class ConceptVectors:
    """Fixed vectors: how concepts look, what they mean as words, filler words, and single words."""

    looks: FloatArray
    meanings: FloatArray
    fillers: FloatArray
    word: dict[str, FloatArray]


def draw_concept_vectors(world: World, words: Sequence[str], settings: SimulationSettings) -> ConceptVectors:
    """Draw the fixed vectors of all concepts and words; in some groups (``confusable``) the concepts look alike."""
    d, rng = settings.difficulty, settings.random("spaces")
    looks = _draw_unit_vectors(rng, len(world.concepts), settings.video_dim)
    groups = int(world.group.max()) + 1
    common = _draw_unit_vectors(rng, groups, settings.video_dim)
    sharing = np.isin([c.kind for c in world.concepts], ["action", "object", "person"])
    alike = (rng.random(groups) < d.confusable)[world.group] & sharing
    likeness = (d.likeness * alike)[:, None]
    looks = np.sqrt(likeness) * common[world.group] + np.sqrt(1 - likeness) * looks
    if settings.streams:
        looks = separate_streams(looks, np.isin([c.kind for c in world.concepts], MOTION_KINDS))
    meanings = _draw_unit_vectors(rng, len(world.concepts), settings.text_dim)
    fillers = _draw_unit_vectors(rng, FILLER_WORDS, settings.text_dim)
    surface = _draw_unit_vectors(rng, len(words), settings.text_dim)
    return ConceptVectors(looks, meanings, fillers, dict(zip(words, surface, strict=True)))


def separate_streams(looks: FloatArray, moves: BoolArray) -> FloatArray:
    """Weaken concepts that ``moves`` in the first half of the columns and all others in the second; normalise.

    >>> separate_streams(np.ones((2, 2)), np.array([False, True])).round(2).tolist()
    [[0.96, 0.29], [0.29, 0.96]]
    """
    second = np.arange(looks.shape[1]) >= looks.shape[1] // 2
    weak = np.where(moves[:, None] == second, looks, OTHER_STREAM_STRENGTH * looks)
    return np.asarray(weak / np.linalg.norm(weak, axis=1, keepdims=True))


def video_features(
    world: World, story: Story, space: ConceptVectors, settings: SimulationSettings
) -> Iterator[tuple[str, Features]]:
    """Yield name and video features, ``(clips, video_dim)``, of every video."""
    d, width, variance = settings.difficulty, settings.video_dim, settings.changes.event_variance
    looks = [
        space.looks @ draw_rotation(settings, show) if variance else space.looks for show in range(len(world.shows))
    ]
    camera = settings.random("camera").standard_normal((width, width)) if settings.changes.camera else None
    for number, film in enumerate(story.videos):
        rng = settings.random("clips", number)
        strength, scenes = visible_concepts(world, story, number, d, rng)
        style = d.style * _draw_unit_vectors(rng, 1, width)
        scenery = 0.5 * d.style * _draw_unit_vectors(rng, len(film.scenes), width)
        clips = strength @ looks[film.show] + style + scenes @ scenery
        if variance:
            clips = clips + variance * event_deviations(story, number, width, settings.random("variance", number))
        noise = rng.standard_normal(clips.shape) * (d.video_noise / np.sqrt(width))
        clips = add_crosstalk(clips, d.crosstalk) + noise
        if camera is not None:
            clips = _see_through(camera, clips, settings.random("exposure", number))
        yield film.name, clips.astype(np.float32)


def event_deviations(story: Story, video: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Return a random vector of length 1 for every event, the same in all its clips, ``(clips, width)``."""
    clips = clip_count(story.videos[video].seconds)
    found = np.zeros((clips, width))
    for part in story.parts():
        m, rows = part.moments, slice(int(part.offsets[video]), int(part.offsets[video + 1]))
        for begin, finish in zip(m.begin[rows].tolist(), m.finish[rows].tolist(), strict=True):
            found += clip_shares(clips, begin, finish)[:, None] * _draw_unit_vectors(rng, 1, width)
    return found


def draw_rotation(settings: SimulationSettings, show: int) -> FloatArray:
    """Return a series' rotation of all visual vectors, by Cayley's transform; it keeps a cosine of about 0.9."""
    width = settings.video_dim
    drawn = settings.random("looks", show).standard_normal((width, width))
    skew = SERIES_ROTATION * settings.changes.event_variance * (drawn - drawn.T) / np.sqrt(2 * width)
    result: FloatArray = np.linalg.solve(np.eye(width) - skew, np.eye(width) + skew)
    return result


def _see_through(camera: FloatArray, clips: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return ``tanh(g A y)`` with a gain g for every clip; some clips are noise of the same strength."""
    gain = np.exp(GAIN_SPREAD * rng.standard_normal((len(clips), 1)))
    seen = gain * (clips @ camera)
    lost = rng.random(len(clips)) < LOST_CLIPS
    seen[lost] = rng.standard_normal((int(lost.sum()), seen.shape[1])) * seen.std()
    result: FloatArray = np.tanh(seen)
    return result


def subtitle_features(
    world: World, story: Story, space: ConceptVectors, settings: SimulationSettings
) -> Iterator[tuple[str, Features]]:
    """Yield name and subtitle features, ``(clips, text_dim)``, of every video; zeros where nobody speaks."""
    d, width = settings.difficulty, settings.text_dim
    for number, film in enumerate(story.videos):
        rng = settings.random("subtitles", number)
        strength = spoken_concepts(world, story, number, settings, rng)
        spoken = (strength > 0).sum(axis=1) > 0
        anyway = FILLER_STRENGTH * space.fillers[rng.integers(FILLER_WORDS, size=clip_count(film.seconds))]
        clips = strength @ space.meanings + anyway
        noise = rng.standard_normal(clips.shape) * (d.subtitle_noise / np.sqrt(width))
        yield film.name, ((add_crosstalk(clips, d.crosstalk) + noise) * spoken[:, None]).astype(np.float32)


def query_features(
    tagged: TaggedText, space: ConceptVectors, settings: SimulationSettings, rng: np.random.Generator
) -> Features:
    """Return the features of a text, ``(words, text_dim)``: each word's vector, some of its neighbours', and noise."""
    d, width = settings.difficulty, settings.text_dim
    own = np.stack([space.word[w] for w in tagged.words])
    concept = np.array(tagged.concepts)
    known = (concept >= 0)[:, None]
    words = np.where(known, np.sqrt(SYNONYM_COSINE) * space.meanings[concept] + np.sqrt(1 - SYNONYM_COSINE) * own, own)
    place = np.arange(len(words))
    near = (np.abs(place[:, None] - place[None]) <= NEIGHBOUR_WORDS).astype(np.float64)
    around = near @ words / near.sum(axis=1, keepdims=True)
    noise = rng.standard_normal(words.shape) * (d.query_noise / np.sqrt(width))
    result: Features = ((1 - d.mixing) * words + d.mixing * around + noise).astype(np.float32)
    return result


def add_crosstalk(clips: FloatArray, share: float) -> FloatArray:
    """Mix a share of each neighbour into every clip; the first and last clips are their own neighbours.

    >>> add_crosstalk(np.array([[0.0], [1.0], [0.0]]), 0.25).ravel().tolist()
    [0.25, 0.5, 0.25]
    """
    before = np.concatenate([clips[:1], clips[:-1]])
    after = np.concatenate([clips[1:], clips[-1:]])
    result: FloatArray = (1 - 2 * share) * clips + share * (before + after)
    return result


def _draw_unit_vectors(rng: np.random.Generator, count: int, width: int) -> FloatArray:
    drawn = rng.standard_normal((count, width))
    result: FloatArray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return result


OPENINGS: dict[str, str] = VOCABULARY["openings"]
FILLERS: list[str] = VOCABULARY["fillers"]


class SimulatedLine(NamedTuple):
    """A spoken line, with its times in seconds."""

    text: str
    start: float
    end: float


def spoken_lines(world: World, story: Story, settings: SimulationSettings) -> Iterator[tuple[str, list[SimulatedLine]]]:
    """Yield name and lines of every video, with the same concepts as its subtitle features, in the same clips."""
    for number, film in enumerate(story.videos):
        strength = spoken_concepts(world, story, number, settings, settings.random("subtitles", number))
        rng = settings.random("lines", number)
        yield film.name, _lines(world, [np.flatnonzero(row > 0) for row in strength], film.seconds, rng)


def _lines(world: World, spoken: list[IntArray], seconds: float, rng: np.random.Generator) -> list[SimulatedLine]:
    """Return one line for each sequence of clips with the same spoken concepts."""
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
    opening = OPENINGS[speech or "plain"]
    things = [*kinds.get("topic", ()), *kinds.get("object", ())]
    if not things:
        return speaker + FILLERS[int(rng.integers(len(FILLERS)))]
    words = [world.concepts[thing].words for thing in things]
    return f"{speaker}{opening} " + " and the ".join(some[int(rng.integers(len(some)))] for some in words) + " ."
