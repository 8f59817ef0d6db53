"""Kinds of sounds: their labels, sources, query words and AudioSet classes.

``kinds.tsv`` has a row for each: its label (``dog barking``), its source (``dog puppy hound``: things that are also
visible, so these words alone do not ask for a sound), further words that ask for it, the wider kind it belongs to, and
its AudioSet classes. Speech, room acoustics and unspecific noises are left out.
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
    """Words for the source of the sound."""
    more_words: tuple[str, ...] = ()
    """Further words that ask for it, besides those of the label."""
    parent: str = ""
    """Label of the wider kind that it belongs to; empty for none."""
    classes: tuple[str, ...] = ()
    """Its AudioSet classes."""

    @property
    def names_source(self) -> bool:
        """Whether the label names the source of the sound."""
        return any(word in self.source for word in self.label.split())

    @property
    def sound_words(self) -> tuple[str, ...]:
        """Words that ask for the sound, not only for its source.

        >>> sound_kind("dog barking").sound_words
        ('barking', 'bark', 'woof', 'yap', 'yelp')
        """
        own = tuple(word for word in self.label.split() if word not in self.source)
        return own + self.more_words


@cache
def sound_kinds() -> dict[str, SoundKind]:
    """Return all kinds by label."""
    _, *lines = KINDS_FILE.read_text("utf-8").splitlines()
    kinds = {}
    for line in lines:
        label, source, more, parent, classes = line.split("\t")
        kinds[label] = SoundKind(label, tuple(source.split()), tuple(more.split()), parent, tuple(classes.split("; ")))
    return kinds


def sound_kind(label: str) -> SoundKind:
    """Return the kind with a label; for other detectors' labels, a kind with only that label."""
    return sound_kinds().get(label) or SoundKind(label)


def wider_kinds(label: str) -> list[SoundKind]:
    """Return the wider kinds that a kind belongs to, the nearest first.

    >>> [kind.label for kind in wider_kinds("electric guitar music")]
    ['guitar music', 'music']
    """
    found = []
    while label := sound_kind(label).parent:
        found.append(sound_kind(label))
    return found
