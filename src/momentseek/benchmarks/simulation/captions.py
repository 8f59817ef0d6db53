"""Captions of moments from a small grammar with synonyms, with and without people's names (TVR-Ranking, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.benchmarks.datasets.imprecise.names import Gazetteer
from momentseek.benchmarks.datasets.imprecise.substitution import substitute
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.story import NO_CONCEPT, Event, SimulatedMoments
from momentseek.benchmarks.simulation.world import World, tag
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray

SPEECH_FIRST_PROBABILITY = 0.4
AND_PROBABILITY = 0.6
PLACE_LAST_PROBABILITY = 0.5
DRAWS_PER_CAPTION = 10
"""Maximum number of random numbers needed to choose a caption's words."""


def write_captions(world: World, moments: SimulatedMoments, rng: np.random.Generator) -> list[str]:
    """Write one sentence per moment, with people's names; ``relevance`` judges what it mentions.

    Another random generator gives paraphrases of the same moments.
    """
    draws = rng.random((len(moments), DRAWS_PER_CAPTION)).tolist()
    return [CaptionWriter(world, event, draw).text() for event, draw in zip(moments.events(), draws, strict=True)]


class CaptionWriter:
    """Writes the caption of one event, choosing words by the given random numbers."""

    def __init__(self, world: World, event: Event, draw: list[float]) -> None:
        self.world = world
        self.event = event
        self.draw = iter(draw)
        self.whom = world.name(event.other)

    def text(self) -> str:
        """Write the caption of the event."""
        e, clauses = self.event, []
        order, ending = next(self.draw), next(self.draw)
        if e.action != NO_CONCEPT:
            clauses.append(self.action_phrase(e.action, e.object, e.color if e.names_color else NO_CONCEPT, e.manner))
        if e.action2 != NO_CONCEPT:
            clauses.append(self.action_phrase(e.action2, e.object2, NO_CONCEPT, NO_CONCEPT))
        if e.speech != NO_CONCEPT:
            said = f"{self.word(e.speech)} {self.whom} about the {self.word(e.topic)}"
            clauses.insert(0 if order < SPEECH_FIRST_PROBABILITY else 1, said)
        joined = (" and " if e.speech != NO_CONCEPT or order < AND_PROBABILITY else ", then ").join(clauses)
        who = self.world.name(e.actor)
        if not e.names_place:
            return f"{who} {joined}."
        where = f"in the {self.word(e.place)}"
        return (
            f"{who} {joined} {where}." if ending < PLACE_LAST_PROBABILITY else f"{where.capitalize()}, {who} {joined}."
        )

    def action_phrase(self, action: int, thing: int, color: int, manner: int) -> str:
        """Return an action with its objects, such as "slowly hands the red mug to Nora"."""
        words = [self.word(manner)] if manner != NO_CONCEPT else []
        words.append(self.word(action))
        together = action in self.world.takes_two
        if thing != NO_CONCEPT:
            words += ["the", *([self.word(color)] if color != NO_CONCEPT else []), self.word(thing)]
            words += ["to"] if together else []
        return " ".join([*words, *([self.whom or ""] if together else [])])

    def word(self, concept: int) -> str:
        """Return one of the words for a concept."""
        words = self.world.concepts[concept].words
        return words[int(next(self.draw) * len(words))]


def remove_names(world: World, texts: Iterable[str]) -> list[str]:
    """Replace every name in the texts by a general word, by the rules of ``datasets.imprecise`` for the known cast.

    >>> from momentseek.benchmarks.simulation.world import the_world
    >>> remove_names(the_world(), ["Nora hands the mug to Clara.", "In the park, Victor hugs Nora."])
    ['A woman hands the mug to another woman.', 'In the park, a man hugs a woman.']
    """
    cast = Gazetteer({}).with_names([(c.name, c.group) for c in world.concepts if c.kind == "person"])
    return [substitute(text, cast).text for text in texts]


VAL_SHARE, TEST_SHARE = 0.05, 0.15
"""Shares of the queries: 250 and 750 of 5,000."""
MAX_PARAPHRASE_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class SimulatedQueries:
    """Texts of queries, and the moment that each describes: first train, then val, then test."""

    texts: tuple[str, ...]
    moment: IntArray
    sizes: tuple[int, int, int]

    def rows(self, split: str) -> slice:
        """Return the rows of the queries of ``train``, ``val`` or ``test``; a query's id is its row plus one."""
        train, val, _ = self.sizes
        return {
            "train": slice(0, train),
            "val": slice(train, train + val),
            "test": slice(train + val, sum(self.sizes)),
        }[split]


def choose_queries(
    world: World, moments: SimulatedMoments, known: Sequence[str], settings: SimulationSettings
) -> SimulatedQueries:
    """Draw distinct texts from the imprecise captions ``known``, and from paraphrases if these are too few.

    ``known`` are the captions of the first moments, which queries are about.
    """
    rng = settings.random("queries")
    first: dict[str, int] = {}
    _add(first, known, rng)
    for _ in range(MAX_PARAPHRASE_ROUNDS):
        if len(first) >= settings.queries:
            break
        _add(first, remove_names(world, write_captions(world, moments, rng)[: len(known)]), rng)
    if len(first) < settings.queries:
        raise MomentseekError(
            f"{settings.videos:,} videos give only {len(first):,} different queries, not {settings.queries:,}; "
            f"ask for fewer ({parameter('queries')}) or make more videos ({parameter('videos')})"
        )
    chosen = list(first.items())[: settings.queries]
    chosen = [chosen[i] for i in rng.permutation(len(chosen)).tolist()]
    val, test = max(1, round(VAL_SHARE * len(chosen))), max(1, round(TEST_SHARE * len(chosen)))
    return SimulatedQueries(
        tuple(text for text, _ in chosen),
        np.array([moment for _, moment in chosen], dtype=np.int64),
        (len(chosen) - val - test, val, test),
    )


def _add(first: dict[str, int], texts: Sequence[str], rng: np.random.Generator) -> None:
    for row in rng.permutation(len(texts)).tolist():
        first.setdefault(texts[row], row)


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
BLOCK_QUERIES = 256


def sentence_vectors(world: World, texts: Sequence[str], settings: SimulationSettings) -> FloatArray:
    """Return a unit vector per text; equal texts have equal vectors."""
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
    vectors += settings.changes.similarity_error * rng.standard_normal(vectors.shape) / np.sqrt(SENTENCE_DIM)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    row_of = {text: i for i, text in enumerate(tagged)}
    return vectors[[row_of[text] for text in texts]]


def _repeats(concept: IntArray) -> IntArray:
    """Return for each word how many words of the text express the same concept."""
    result: IntArray = (concept[:, None] == concept[None]).sum(axis=1)
    return result


def nearest_captions(queries: FloatArray, captions: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Find the ``count`` captions most similar to each query, best first, and the similarities to four digits.

    The similarity is the square root of the cosine: the order is the same, and related sentences have values as high as
    SimCSE's.

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
