"""Kinds of sounds: what they are called, what makes them, the words that ask for them, and the classes of YAMNet.

``kinds.tsv`` has a row for each: its label (``dog barking``), what makes it (``dog puppy hound``: words for things that
are also seen, so that they alone ask for no sound), further words that ask for it, the wider kind that it belongs to,
and the AudioSet classes that it stands for. Speech, rooms and noises that say nothing are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

KINDS_FILE = Path(__file__).with_name("kinds.tsv")


@dataclass(frozen=True)
class SoundKind:
    """A kind of sound."""

    label: str
    source: tuple[str, ...] = ()
    """Words for what makes it."""
    more_words: tuple[str, ...] = ()
    """Words besides those of the label that ask for it."""
    parent: str = ""
    """Label of the wider kind that it belongs to; empty for none."""
    classes: tuple[str, ...] = ()
    """AudioSet classes that it stands for."""

    @property
    def names_source(self) -> bool:
        """Whether the label says what makes the sound."""
        return any(word in self.source for word in self.label.split())

    @property
    def sound_words(self) -> tuple[str, ...]:
        """Words that ask for the sound, not only for what makes it.

        >>> sound_kind("dog barking").sound_words
        ('barking', 'bark', 'woof', 'yap', 'yelp')
        """
        own = tuple(word for word in self.label.split() if word not in self.source)
        return own + self.more_words


@cache
def sound_kinds() -> dict[str, SoundKind]:
    """All kinds by their labels."""
    _, *lines = KINDS_FILE.read_text("utf-8").splitlines()
    kinds = {}
    for line in lines:
        label, source, more, parent, classes = line.split("\t")
        kinds[label] = SoundKind(label, tuple(source.split()), tuple(more.split()), parent, tuple(classes.split("; ")))
    return kinds


def sound_kind(label: str) -> SoundKind:
    """The kind with a label; one that is only the label where a detector has kinds of its own."""
    return sound_kinds().get(label) or SoundKind(label)


def wider_kinds(label: str) -> list[SoundKind]:
    """The kinds that a kind belongs to, the nearest first.

    >>> [kind.label for kind in wider_kinds("electric guitar music")]
    ['guitar music', 'music']
    """
    found = []
    while label := sound_kind(label).parent:
        found.append(sound_kind(label))
    return found
