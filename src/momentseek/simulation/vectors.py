"""Features: fixed random vectors per concept, mixed by what happens, with style, cross-talk and noise.

Clips live in one space, words (of queries and subtitles) in another; which vectors belong together is what a model
has to learn. With strengths :math:`a_{tk}` of concept k in clip t (``activity``), concept vectors :math:`v_k`, the
style u of the video and :math:`w_s` of the scene, and cross-talk c:

.. math:: x_t = (1-2c)\\, y_t + c\\,(y_{t-1} + y_{t+1}) + \\varepsilon_t, \\qquad
          y_t = \\sum_k a_{tk} v_k + u + w_{s(t)}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.moments.arrays import FloatArray
from momentseek.simulation.activity import clip_count, spoken_concepts, visible_concepts
from momentseek.simulation.lexicon import TaggedText
from momentseek.simulation.settings import SimulationSettings
from momentseek.simulation.story import Story
from momentseek.simulation.world import World

Features = NDArray[np.float32]
SYNONYM_COSINE = 0.6
"""Cosine of the vectors of two words for one concept."""
FILLER_WORDS = 12
"""Words that are said whatever the topic."""
FILLER_STRENGTH = 0.4
NEIGHBOUR_WORDS = 2
"""Words to either side that are mixed into a query's word."""


@dataclass(frozen=True, eq=False)
class ConceptVectors:
    """Fixed vectors of the concepts as they look and as they are named, of single words, and of filler words."""

    looks: FloatArray
    meanings: FloatArray
    fillers: FloatArray
    word: dict[str, FloatArray]


def draw_concept_vectors(world: World, words: Sequence[str], settings: SimulationSettings) -> ConceptVectors:
    """Draw all fixed vectors; in a share of the groups the members look alike."""
    d, rng = settings.difficulty, settings.random("spaces")
    looks = _draw_unit_vectors(rng, len(world.concepts), settings.video_dim)
    groups = int(world.group.max()) + 1
    common = _draw_unit_vectors(rng, groups, settings.video_dim)
    sharing = np.isin([c.kind for c in world.concepts], ["action", "object", "person"])
    alike = (rng.random(groups) < d.confusable)[world.group] & sharing
    likeness = (d.likeness * alike)[:, None]
    looks = np.sqrt(likeness) * common[world.group] + np.sqrt(1 - likeness) * looks
    meanings = _draw_unit_vectors(rng, len(world.concepts), settings.text_dim)
    fillers = _draw_unit_vectors(rng, FILLER_WORDS, settings.text_dim)
    surface = _draw_unit_vectors(rng, len(words), settings.text_dim)
    return ConceptVectors(looks, meanings, fillers, dict(zip(words, surface, strict=True)))


def video_features(
    world: World, story: Story, space: ConceptVectors, settings: SimulationSettings
) -> Iterator[tuple[str, Features]]:
    """The name and video features, ``(clips, video_dim)``, of every video, one at a time."""
    d, width = settings.difficulty, settings.video_dim
    for number, film in enumerate(story.videos):
        rng = settings.random("clips", number)
        strength, scenes = visible_concepts(world, story, number, d, rng)
        style = d.style * _draw_unit_vectors(rng, 1, width)
        scenery = 0.5 * d.style * _draw_unit_vectors(rng, len(film.scenes), width)
        clips = strength @ space.looks + style + scenes @ scenery
        noise = rng.standard_normal(clips.shape) * (d.video_noise / np.sqrt(width))
        yield film.name, (add_crosstalk(clips, d.crosstalk) + noise).astype(np.float32)


def subtitle_features(
    world: World, story: Story, space: ConceptVectors, settings: SimulationSettings
) -> Iterator[tuple[str, Features]]:
    """The name and subtitle features, ``(clips, text_dim)``, of every video; zeros where nobody speaks."""
    d, width = settings.difficulty, settings.text_dim
    for number, film in enumerate(story.videos):
        rng = settings.random("subtitles", number)
        strength = spoken_concepts(world, story, number, d, rng)
        spoken = (strength > 0).sum(axis=1) > 0
        anyway = FILLER_STRENGTH * space.fillers[rng.integers(FILLER_WORDS, size=clip_count(film.seconds))]
        clips = strength @ space.meanings + anyway
        noise = rng.standard_normal(clips.shape) * (d.subtitle_noise / np.sqrt(width))
        yield film.name, ((add_crosstalk(clips, d.crosstalk) + noise) * spoken[:, None]).astype(np.float32)


def query_features(
    tagged: TaggedText, space: ConceptVectors, settings: SimulationSettings, rng: np.random.Generator
) -> Features:
    """The features of one text, ``(words, text_dim)``: each word's vector, some of its neighbours', and noise."""
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
    """Mix into every clip a share of each neighbour; a video's first and last clip are their own neighbours.

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
