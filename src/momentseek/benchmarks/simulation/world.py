"""The numbered concepts of the simulated world, and which of them belong together."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np

from momentseek.core.moments.arrays import IntArray

VOCABULARY = tomllib.loads((files(__package__) / "vocabulary.toml").read_text(encoding="utf-8"))
"""Kinds of concepts with their members and phrases, and which belong together; explained in the file."""


@dataclass(frozen=True, slots=True)
class Concept:
    """Something that can be seen, done or talked about; concepts of one ``group`` are easily confused."""

    kind: str
    name: str
    group: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Show:
    """A series: its people and places, by concept number."""

    name: str
    cast: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class World:
    """All concepts and shows, which are the same for every seed; the seed decides what happens and how it looks."""

    concepts: tuple[Concept, ...]

    @cached_property
    def number(self) -> dict[tuple[str, str], int]:
        """The number of the concept of a (kind, name)."""
        return {(c.kind, c.name): i for i, c in enumerate(self.concepts)}

    def of_kind(self, kind: str) -> IntArray:
        """Return the numbers of all concepts of a kind."""
        return np.array([i for i, c in enumerate(self.concepts) if c.kind == kind], dtype=np.int64)

    @cached_property
    def group(self) -> IntArray:
        """The number of every concept's group."""
        names = sorted({(c.kind, c.group) for c in self.concepts})
        return np.array([names.index((c.kind, c.group)) for c in self.concepts], dtype=np.int64)

    @cached_property
    def gender(self) -> IntArray:
        """The gender concept of every person; -1 for concepts that are not people."""
        people = {"female": self.number["gender", "female"], "male": self.number["gender", "male"]}
        return np.array([people[c.group] if c.kind == "person" else -1 for c in self.concepts], dtype=np.int64)

    @cached_property
    def shows(self) -> tuple[Show, ...]:
        """The series, with their people and places."""
        return tuple(
            Show(
                name,
                tuple(self.number["person", p] for p in (*show["women"], *show["men"])),
                tuple(self.number["place", p] for p in show["places"]),
            )
            for name, show in VOCABULARY["shows"].items()
        )

    @cached_property
    def objects_for(self) -> dict[int, IntArray]:
        """The possible objects of each action, by action; empty if it needs none."""
        found = {}
        for i in self.of_kind("action").tolist():
            action = self.concepts[i]
            kinds = VOCABULARY["object_classes"].get(action.group, ())
            if action.name in VOCABULARY["drinks"]:
                kinds = ("drinks",)
            names = [name for kind in kinds for name in VOCABULARY["objects"][kind]]
            found[i] = np.array([self.number["object", name] for name in names], dtype=np.int64)
        return found

    @cached_property
    def takes_two(self) -> frozenset[int]:
        """Actions that need a second person."""
        groups = VOCABULARY["two_person_groups"]
        return frozenset(i for i in self.of_kind("action").tolist() if self.concepts[i].group in groups)

    def name(self, concept: int) -> str | None:
        """Return the name of a concept; None for -1."""
        return None if concept < 0 else self.concepts[concept].name


@cache
def the_world() -> World:
    """Return the world that ``vocabulary.toml`` describes.

    >>> world = the_world()
    >>> world.concepts[world.number["action", "hug"]]
    Concept(kind='action', name='hug', group='affection', words=('hugs', 'embraces'))
    """
    concepts: list[Concept] = []
    for kind, groups in (("action", "actions"), ("object", "objects"), ("speech", "speech"), ("topic", "topics")):
        for group, members in VOCABULARY[groups].items():
            concepts += [Concept(kind, name, group, tuple(words)) for name, words in members.items()]
    for kind, names in (("place", "places"), ("color", "colors"), ("manner", "manners"), ("gender", "person_words")):
        concepts += [Concept(kind, name, name, tuple(words)) for name, words in VOCABULARY[names].items()]
    for show in VOCABULARY["shows"].values():
        concepts += [Concept("person", name, "female", (name,)) for name in show["women"]]
        concepts += [Concept("person", name, "male", (name,)) for name in show["men"]]
    concepts += [Concept("idle", name, name, ()) for name in VOCABULARY["idle"]]
    return World(tuple(concepts))


WORD_PATTERN = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class TaggedText:
    """The words of a text in lower case, and the number of each word's concept (-1: none)."""

    words: tuple[str, ...]
    concepts: tuple[int, ...]


def tag(text: str) -> TaggedText:
    """Find the words of a text and the concept of each.

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
    """Return all phrases of the world (as tuples of words), each with the number of its concept."""
    found: dict[tuple[str, ...], int] = {}
    for number, concept in enumerate(the_world().concepts):
        for phrase in concept.words:
            words = tuple(phrase.lower().split())
            if found.setdefault(words, number) != number:
                raise ValueError(f"{phrase!r} belongs to two concepts")
    return found
