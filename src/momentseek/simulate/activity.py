"""What is to be seen and heard in every clip of a video: a strength per concept."""

from __future__ import annotations

import math

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.simulate.difficulty import Difficulty
from momentseek.simulate.settings import CLIP_SECONDS
from momentseek.simulate.story import NONE, Story
from momentseek.simulate.world import World

ACTION, OBJECT, COLOR, MANNER, PERSON, GENDER, IDLE = 1.0, 0.8, 0.5, 0.5, 0.4, 0.3, 0.5
TOPIC, SPEECH, SPEAKER, MENTION = 1.0, 0.6, 0.3, 0.5
CLEAR = (0.1, 0.6, 1.0)
"""How much is seen of an action that is hardly in the picture, at its edge, or at a prominent spot."""
MENTIONED = 0.3
"""How often the object of an action is spoken of while it is used."""
QUIET = 0.3
"""Share of clips in which nobody speaks, outside spoken moments."""


def clip_count(seconds: float) -> int:
    """Clips of a video, the last one perhaps incomplete.

    >>> clip_count(61.46), clip_count(3.0)
    (41, 2)
    """
    return max(1, math.ceil(round(seconds / CLIP_SECONDS, 6)))


def covered(clips: int, start: float, end: float) -> FloatArray:
    """The share of every clip that lies between two times.

    >>> covered(4, 1.5, 3.75).tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    edges = np.arange(clips) * CLIP_SECONDS
    shared = np.minimum(edges + CLIP_SECONDS, end) - np.maximum(edges, start)
    result: FloatArray = np.clip(shared / CLIP_SECONDS, 0, 1)
    return result


def seen(
    world: World, story: Story, video: int, difficulty: Difficulty, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """``(clips, concepts)`` of what is visible, and ``(clips, scenes)``: which scene a clip belongs to."""
    film, m = story.videos[video], story.moments
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    scenes = np.stack([covered(clips, s.start, s.end) for s in film.scenes], axis=1)
    for share, scene in zip(scenes.T, film.scenes, strict=True):
        strength[:, scene.place] += 2 * difficulty.scenery * share
        for concept in (*scene.people, *scene.props):
            strength[:, concept] += difficulty.scenery / 2 * share
    busy = np.zeros(clips)
    for row in range(int(story.offsets[video]), int(story.offsets[video + 1])):
        begin, finish = float(m.begin[row]), float(m.finish[row])
        share = covered(clips, begin, finish)
        for person in (int(m.actor[row]), int(m.other[row])):
            if person != NONE:
                strength[:, person] += PERSON * share
                strength[:, world.gender[person]] += GENDER * share
        if m.action[row] == NONE:
            continue
        busy = np.maximum(busy, share)
        halves = [(int(m.action[row]), int(m.object[row]), begin, finish)]
        if m.action2[row] != NONE:
            middle = (begin + finish) / 2
            second = (int(m.action2[row]), int(m.object2[row]), middle, finish)
            halves = [(*halves[0][:2], begin, middle), second]
        clear = CLEAR[m.prominence[row]]
        for detail, weight in ((int(m.color[row]), COLOR), (int(m.manner[row]), MANNER)):
            if detail != NONE:
                strength[:, detail] += clear * weight * covered(clips, halves[0][2], halves[0][3])
        for action, thing, since, until in halves:
            part = clear * covered(clips, since, until)
            strength[:, action] += ACTION * part
            if thing != NONE:
                strength[:, thing] += OBJECT * part
    idle = rng.choice(world.of_kind("idle"), clips)
    strength[np.arange(clips), idle] += IDLE * (1 - busy)
    return strength, scenes


def heard(world: World, story: Story, video: int, difficulty: Difficulty, rng: np.random.Generator) -> FloatArray:
    """``(clips, concepts)`` of what is spoken of; a row of zeros is silence."""
    film, m = story.videos[video], story.moments
    clips = clip_count(film.seconds)
    strength = np.zeros((clips, len(world.concepts)))
    for row in range(int(story.offsets[video]), int(story.offsets[video + 1])):
        share = covered(clips, float(m.begin[row]), float(m.finish[row]))
        if m.topic[row] != NONE:
            strength[:, m.topic[row]] += TOPIC * share
            strength[:, m.speech[row]] += SPEECH * share
            strength[:, m.actor[row]] += SPEAKER * share
        elif m.object[row] != NONE and rng.random() < MENTIONED:
            strength[:, m.object[row]] += MENTION * share
    loud = (strength > 0).sum(axis=1) > 0
    speakers = [scene.people for scene in film.scenes]
    topics = world.of_kind("topic")
    now = int(rng.choice(topics))
    for clip in np.flatnonzero(~loud | (rng.random(clips) < difficulty.chatter)).tolist():
        if not loud[clip] and rng.random() < QUIET:
            continue
        if rng.random() < 0.3:
            now = int(rng.choice(topics))
        scene = min(int(np.searchsorted([s.end for s in film.scenes], clip * CLIP_SECONDS)), len(speakers) - 1)
        strength[clip, speakers[scene][int(rng.integers(len(speakers[scene])))]] += SPEAKER
        if rng.random() < difficulty.chatter:
            strength[clip, now] += TOPIC / 2
    return strength
