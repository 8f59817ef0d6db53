"""What is heard besides speech: events whose labels have the query's words, such as "dog barking" for "a dog barks"."""

from __future__ import annotations

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


def search_sounds(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[StreamHit]:
    """Hits on sounds whose labels have most of the words of a text, best first: by the words, then by the score."""
    terms, labels = content_words(text), sound_labels(catalog)
    if not terms or not labels:
        return []
    found = WordMatcher(labels).matches(terms).sum(axis=1)
    shares = {
        label: float(count) / len(terms)
        for label, count in zip(labels, found.tolist(), strict=True)
        if count >= FAIR_SHARE * len(terms)
    }
    hits = []
    for video, event in events_with_labels(catalog, shares, allowed, MAX_EVENTS):
        share = shares[event.label]
        level = word_level(share, round(share * len(terms)), only_here=False)
        if event.score < SURE_SCORE and level == "strong":
            level = "fair"
        hits.append(StreamHit(video, event.start, event.end, share + event.score, level))
    return sorted(hits, key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))
