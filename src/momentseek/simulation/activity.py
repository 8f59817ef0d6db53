"""What can be seen and heard in every clip of a video: a strength per concept."""

from __future__ import annotations

import math

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.simulation.settings import CLIP_SECONDS, Difficulty
from momentseek.simulation.story import NO_CONCEPT, Story
from momentseek.simulation.world import World

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
"""How strongly an action shows that is hardly in the picture, at its edge, or at a prominent spot."""
MENTION_PROBABILITY = 0.3
"""How often the object of an action is mentioned while it is used."""
SILENCE_PROBABILITY = 0.3
"""Share of clips in which nobody speaks, outside spoken moments."""


def clip_count(seconds: float) -> int:
    """Number of clips of a video; the last one may be incomplete.

    >>> clip_count(61.46), clip_count(3.0)
    (41, 2)
    """
    return max(1, math.ceil(round(seconds / CLIP_SECONDS, 6)))


def clip_shares(clips: int, start: float, end: float) -> FloatArray:
    """The share of every clip that lies between two times.

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
    """The strength of every visible concept per clip, ``(clips, concepts)``, and each clip's share of every scene."""
    film, m = story.videos[video], story.moments
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    scenes = np.stack([clip_shares(clips, s.start, s.end) for s in film.scenes], axis=1)
    for share, scene in zip(scenes.T, film.scenes, strict=True):
        strength[:, scene.place] += 2 * difficulty.scenery * share
        for concept in (*scene.people, *scene.props):
            strength[:, concept] += difficulty.scenery / 2 * share
    busy = np.zeros(clips)
    for row in range(int(story.offsets[video]), int(story.offsets[video + 1])):
        begin, finish = float(m.begin[row]), float(m.finish[row])
        share = clip_shares(clips, begin, finish)
        for person in (int(m.actor[row]), int(m.other[row])):
            if person != NO_CONCEPT:
                strength[:, person] += PERSON_STRENGTH * share
                strength[:, world.gender[person]] += GENDER_STRENGTH * share
        if m.action[row] == NO_CONCEPT:
            continue
        busy = np.maximum(busy, share)
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
    idle = rng.choice(world.of_kind("idle"), clips)
    strength[np.arange(clips), idle] += IDLE_STRENGTH * (1 - busy)
    return strength, scenes


def spoken_concepts(
    world: World, story: Story, video: int, difficulty: Difficulty, rng: np.random.Generator
) -> FloatArray:
    """The strength of every concept that is spoken of per clip, ``(clips, concepts)``; a row of zeros is silence."""
    film, m = story.videos[video], story.moments
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    for row in range(int(story.offsets[video]), int(story.offsets[video + 1])):
        share = clip_shares(clips, float(m.begin[row]), float(m.finish[row]))
        if m.topic[row] != NO_CONCEPT:
            strength[:, m.topic[row]] += TOPIC_STRENGTH * share
            strength[:, m.speech[row]] += SPEECH_STRENGTH * share
            strength[:, m.actor[row]] += SPEAKER_STRENGTH * share
        elif m.object[row] != NO_CONCEPT and rng.random() < MENTION_PROBABILITY:
            strength[:, m.object[row]] += MENTION_STRENGTH * share
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
