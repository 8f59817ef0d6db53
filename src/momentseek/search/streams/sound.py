"""What is heard besides speech: events whose labels have the query's words, such as "dog barking" for "a dog barks"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from momentseek.library.catalog import Catalog
from momentseek.library.sounds import events_with_labels, sound_labels
from momentseek.library.words import WordMatcher, content_words
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids
from momentseek.search.streams.word_weights import FAIR_SHARE, word_level

MAX_EVENTS = 400
"""Events that are looked at."""
SURE_SCORE = 0.5
"""Score of an event from which its label can make a hit strong; a detector that is less sure makes it fair at most."""


class SoundMatch(NamedTuple):
    """A sound whose label has most of the words that are looked for."""

    hit: StreamHit
    score: float
    """How sure the detector is of it."""
    order: int
    """Its place among the equals of its video."""


def search_sounds(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[StreamHit]:
    """Hits on sounds whose labels have most of the words of a text, best first: by the words, then by the score."""
    return best_sounds(find_sounds(catalog, text, allowed))


def find_sounds(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[SoundMatch]:
    """The surest sounds whose labels have most of the words of a text, ``MAX_EVENTS`` at most."""
    terms, labels = content_words(text), sound_labels(catalog)
    if not terms or not labels:
        return []
    found = WordMatcher(labels).matches(terms).sum(axis=1)
    shares = {
        label: float(count) / len(terms)
        for label, count in zip(labels, found.tolist(), strict=True)
        if count >= FAIR_SHARE * len(terms)
    }
    out = []
    for at, (video, event) in enumerate(events_with_labels(catalog, shares, allowed, MAX_EVENTS)):
        share = shares[event.label]
        level = word_level(share, round(share * len(terms)), only_here=False)
        if event.score < SURE_SCORE and level == "strong":
            level = "fair"
        out.append(SoundMatch(StreamHit(video, event.start, event.end, share + event.score, level), event.score, at))
    return out


def best_sounds(found: Sequence[SoundMatch]) -> list[StreamHit]:
    """Hits of the surest of some sounds, best first."""
    surest = sorted(found, key=lambda match: (-match.score, match.hit.video, match.order))[:MAX_EVENTS]
    return sorted((match.hit for match in surest), key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))
