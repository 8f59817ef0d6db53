"""Captions of moments, from a small grammar with synonyms: with people's names, and without (TVR-Ranking, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from momentseek.construct.imprecise.gazetteer import Gazetteer
from momentseek.construct.imprecise.substitution import substitute
from momentseek.simulation.story import NO_CONCEPT, Event, SimulatedMoments
from momentseek.simulation.world import World

SPEECH_FIRST_PROBABILITY = 0.4
AND_PROBABILITY = 0.6
PLACE_LAST_PROBABILITY = 0.5
DRAWS_PER_CAPTION = 10
"""Random numbers that the choice of a caption's words may need."""


def write_captions(world: World, moments: SimulatedMoments, rng: np.random.Generator) -> list[str]:
    """Write one sentence per moment, with people's names; what it mentions is what ``relevance`` asks for.

    The same moments with another stream of random numbers give paraphrases.
    """
    draws = rng.random((len(moments), DRAWS_PER_CAPTION)).tolist()
    return [CaptionWriter(world, event, draw).text() for event, draw in zip(moments.events(), draws, strict=True)]


class CaptionWriter:
    """Writes the caption of one event, choosing words by random numbers of its own."""

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
        """An action with its objects, such as "slowly hands the red mug to Nora"."""
        words = [self.word(manner)] if manner != NO_CONCEPT else []
        words.append(self.word(action))
        together = action in self.world.takes_two
        if thing != NO_CONCEPT:
            words += ["the", *([self.word(color)] if color != NO_CONCEPT else []), self.word(thing)]
            words += ["to"] if together else []
        return " ".join([*words, *([self.whom or ""] if together else [])])

    def word(self, concept: int) -> str:
        """One of the words for a concept."""
        words = self.world.concepts[concept].words
        return words[int(next(self.draw) * len(words))]


def remove_names(world: World, texts: Iterable[str]) -> list[str]:
    """Replace every name in the texts by a general word, by the rules of ``construct.imprecise`` for the known cast.

    >>> from momentseek.simulation.world import the_world
    >>> remove_names(the_world(), ["Nora hands the mug to Clara.", "In the park, Victor hugs Nora."])
    ['A woman hands the mug to another woman.', 'In the park, a man hugs a woman.']
    """
    cast = Gazetteer({}).with_names([(c.name, c.group) for c in world.concepts if c.kind == "person"])
    return [substitute(text, cast).text for text in texts]
