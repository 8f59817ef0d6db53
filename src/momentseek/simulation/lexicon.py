"""Reads a text back into concepts, word by word: the longest known phrase wins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from momentseek.simulation.world import the_world

WORD_PATTERN = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class TaggedText:
    """The words of a text in lower case, and the number of the concept for which each stands (-1: none)."""

    words: tuple[str, ...]
    concepts: tuple[int, ...]


def tag(text: str) -> TaggedText:
    """Find the words of a text and the concept for which each stands.

    >>> tagged = tag("A man picks up the mug.")
    >>> [(w, the_world().name(c)) for w, c in zip(tagged.words, tagged.concepts)]
    [('a', None), ('man', 'male'), ('picks', 'lift'), ('up', 'lift'), ('the', None), ('mug', 'mug')]
    """
    known = phrases()
    words = tuple(w.removesuffix("'s").lower() for w in WORD_PATTERN.findall(text))
    concepts: list[int] = []
    while len(concepts) < len(words):
        at = len(concepts)
        for length in range(min(LONGEST_PHRASE_WORDS, len(words) - at), 0, -1):
            concept = known.get(words[at : at + length])
            if concept is not None:
                concepts += [concept] * length
                break
        else:
            concepts.append(-1)
    return TaggedText(words, tuple(concepts))


LONGEST_PHRASE_WORDS = 5


@cache
def phrases() -> dict[tuple[str, ...], int]:
    """All phrases of the world (as tuples of words), each with the number of its concept."""
    found: dict[tuple[str, ...], int] = {}
    for number, concept in enumerate(the_world().concepts):
        for phrase in concept.words:
            words = tuple(phrase.lower().split())
            if found.setdefault(words, number) != number:
                raise ValueError(f"{phrase!r} belongs to two concepts")
    return found
