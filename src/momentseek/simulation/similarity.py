"""sim(q, caption): the proxy that chooses candidates and training moments, close to the truth but not the truth.

TVR-Ranking uses SimCSE between texts. Here a sentence is the sum of its words' vectors, weighted by what they tell,
plus an error of its own; synonyms have similar vectors, and equal texts a similarity of exactly 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from momentseek.moments.arrays import FloatArray, IntArray
from momentseek.simulation.lexicon import tag
from momentseek.simulation.settings import SimulationSettings
from momentseek.simulation.world import World

SENTENCE_DIM = 96
SYNONYM_COSINE = 0.7
"""Cosine of the vectors of two words for one concept."""
GROUP_COSINE = 0.35
"""Cosine of the vectors of two concepts of one group."""
KIND_WEIGHTS = {
    "action": 1.0,
    "object": 0.9,
    "speech": 0.7,
    "topic": 1.0,
    "place": 0.6,
    "color": 0.5,
    "manner": 0.5,
    "gender": 0.3,
    "person": 0.3,
}
ERROR_LENGTH = 0.3
"""Length of a sentence's own error, beside the sentence's length of 1."""
BLOCK_QUERIES = 256


def sentence_vectors(world: World, texts: Sequence[str], settings: SimulationSettings) -> FloatArray:
    """A unit vector per text; equal texts have equal vectors."""
    rng = settings.random("similarity")
    groups = rng.standard_normal((int(world.group.max()) + 1, SENTENCE_DIM)) / np.sqrt(SENTENCE_DIM)
    own = rng.standard_normal((len(world.concepts), SENTENCE_DIM)) / np.sqrt(SENTENCE_DIM)
    concepts = np.sqrt(GROUP_COSINE) * groups[world.group] + np.sqrt(1 - GROUP_COSINE) * own
    tagged = {text: tag(text) for text in dict.fromkeys(texts)}
    words = sorted({word for t in tagged.values() for word in t.words})
    number = {word: i for i, word in enumerate(words)}
    surface = rng.standard_normal((len(words), SENTENCE_DIM)) / np.sqrt(SENTENCE_DIM)
    weight = np.array([KIND_WEIGHTS.get(c.kind, 0.0) for c in world.concepts])
    vectors = np.empty((len(tagged), SENTENCE_DIM))
    for row, t in enumerate(tagged.values()):
        which = np.array([number[w] for w in t.words])
        concept = np.array(t.concepts)
        known = concept >= 0
        strength = np.where(known, weight[concept] / np.maximum(_repeats(concept), 1), 0.05)
        meaning = np.where(known[:, None], np.sqrt(SYNONYM_COSINE) * concepts[concept], 0)
        vectors[row] = strength @ (meaning + np.sqrt(1 - SYNONYM_COSINE) * surface[which])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors += ERROR_LENGTH * rng.standard_normal(vectors.shape) / np.sqrt(SENTENCE_DIM)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    row_of = {text: i for i, text in enumerate(tagged)}
    return vectors[[row_of[text] for text in texts]]


def _repeats(concept: IntArray) -> IntArray:
    """How many words of the text stand for the same concept."""
    result: IntArray = (concept[:, None] == concept[None]).sum(axis=1)
    return result


def nearest_captions(queries: FloatArray, captions: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Find the ``count`` captions most similar to each query, best first, and the similarities to four digits.

    The similarity is the root of the cosine: it orders alike, and is as high as SimCSE's of related sentences.

    >>> rows, similarity = nearest_captions(np.eye(2)[:1], np.array([[0, 1.0], [1, 0], [0.6, 0.8]]), 2)
    >>> rows.tolist(), similarity.tolist()
    ([[1, 2]], [[1.0, 0.7746]])
    """
    total = len(captions)
    count = min(count, total)
    rows = np.empty((len(queries), count), dtype=np.int64)
    values = np.empty((len(queries), count))
    for at in range(0, len(queries), BLOCK_QUERIES):
        cosine = np.sqrt(np.clip(queries[at : at + BLOCK_QUERIES] @ captions.T, 0, 1)).round(4)
        key = np.rint(-cosine * 10_000).astype(np.int64) * total + np.arange(total)  # ties: the earlier first
        best = np.sort(np.partition(key, count - 1, axis=1)[:, :count], axis=1) % total
        rows[at : at + BLOCK_QUERIES] = best
        values[at : at + BLOCK_QUERIES] = np.take_along_axis(cosine, best, axis=1)
    return rows, values
