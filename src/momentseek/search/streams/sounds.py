"""The sound stream: finds sounds by the words and the meaning of their labels: "a dog barks" finds ``dog barking``.

A query asks for a sound only if it has a word for one. "A dog" is visual; the bark needs "a dog barks" or "the sound of
a dog". Words for people need not be in the label: "a man laughs" asks for ``laughter``, at a lower level. A query
without a word for any known sound may still match one by meaning; such a hit is fair at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.tracks.sounds import events_with_labels
from momentseek.library.words import WordMatcher, content_words
from momentseek.recognition.sounds.kinds import SoundKind, sound_kind, sound_kinds, wider_kinds
from momentseek.search.confidence import LEVELS
from momentseek.search.hit import Level, StreamHit
from momentseek.search.stream_index import Ids

MAX_EVENTS = 400
"""Largest number of sounds that are considered."""
MIN_SHARE = 0.6
"""Smallest share of the query's words that a label must match."""
STRONG_SCORE, FAIR_SCORE = 0.8, 0.5
"""Detector scores from which a hit is strong, or fair (docs/recognition.md)."""
MIN_COSINE = 0.65
"""Cosine of a query with ``SOUND_OF`` a label from which it matches by meaning (MiniLM; docs/recognition.md)."""
SOUND_OF = "the sound of {}"
_HEARING = "audible audio hear heard hearing hears listen loud loudly noise noises sound sounding sounds"
_ANYBODY = "anybody boy boys girl girls guy lady man men people person somebody woman women"
HEARING_WORDS = frozenset(_HEARING.split())
"""Words that show that a query asks for a sound."""
ANYBODY = frozenset(_ANYBODY.split())
"""Words for people, which need not be in a label."""

LabelCosines = Callable[[str, Sequence[str]], Mapping[str, float]]
"""Returns the cosine of a text with each label; empty if there is no encoder."""


class AskedSound(NamedTuple):
    """How well a label matches the query."""

    share: float
    """Share of the query's words that it matches, or its cosine."""
    level: Level
    """Highest level of a hit with this label."""


class SoundMatch(NamedTuple):
    """A sound that matches the query."""

    hit: StreamHit
    score: float
    """The detector's score."""
    order: int
    """Its position among the sounds found, to break ties."""


class _KindWords:
    """Matches the words of queries with those of kinds of sounds."""

    def __init__(self, kinds: Sequence[SoundKind]) -> None:
        self.kinds = kinds
        texts = [*(kind.sound_words for kind in kinds), *(kind.source for kind in kinds)]
        self._matcher = WordMatcher([" ".join(words) for words in texts])
        self._family = np.eye(len(kinds), dtype=np.int32)
        place = {kind.label: at for at, kind in enumerate(kinds)}
        for at, kind in enumerate(kinds):
            self._family[at, [place[one.label] for one in wider_kinds(kind.label)]] = 1

    def matches(self, terms: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Two arrays ``(kinds, terms)``: whether a term names the sound, and whether it names its source."""
        asks, source = np.split(self._matcher.matches(terms), 2)
        return asks, source

    def with_wider(self, matches: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Add the matches of the wider kinds to which each kind belongs."""
        found: NDArray[np.bool_] = self._family @ matches.astype(np.int32) > 0
        return found


@cache
def _known_words() -> _KindWords:
    return _KindWords(list(sound_kinds().values()))


def asked_sounds(labels: Sequence[str], text: str, cosines: LabelCosines) -> dict[str, AskedSound]:
    """The labels that a text asks for.

    >>> asked_sounds(["dog barking", "music"], "a dog barks", lambda text, labels: {})
    {'dog barking': AskedSound(share=1.0, level='strong')}
    >>> asked_sounds(["dog barking", "music"], "a dog", lambda text, labels: {})
    {}
    """
    if not labels:
        return {}
    own = [label for label in labels if label not in sound_kinds()]
    found = _by_words(_known_words(), text) | (_by_words(_KindWords([*map(sound_kind, own)]), text) if own else {})
    if found:
        return {label: found[label] for label in labels if label in found}
    return _by_meaning(labels, text, cosines)


def _by_words(words: _KindWords, text: str) -> dict[str, AskedSound]:
    terms = content_words(text)
    hears = bool(HEARING_WORDS.intersection(terms))
    terms = [term for term in terms if term not in HEARING_WORDS]
    if not terms:
        return {}
    asks, source = words.matches(terms)
    sure = np.logical_and((asks | source).all(axis=1), (asks & ~source).any(axis=1) | hears)
    asks, source = words.with_wider(asks), words.with_wider(source)
    has = asks | source
    anybody = np.array([term in ANYBODY for term in terms])
    share = has.sum(axis=1) / np.maximum((has | ~anybody).sum(axis=1), 1)
    chosen = (share >= MIN_SHARE) & (asks.any(axis=1) | (hears & has.any(axis=1)))
    named = np.logical_or((asks & ~source).any(axis=1), hears)
    plain = _named_labels([kind for at, kind in enumerate(words.kinds) if chosen[at] and sure[at]], terms)
    found = {}
    for at in np.flatnonzero(chosen).tolist():
        kind = words.kinds[at]
        other = plain and kind.names_source and not source[at].any()  # "singing" does not ask for birds
        if not other or plain.intersection(wider.label for wider in wider_kinds(kind.label)):
            level: Level = "strong" if sure[at] else "fair" if named[at] else "weak"
            found[kind.label] = AskedSound(float(share[at]), level)
    return found


def _named_labels(kinds: Sequence[SoundKind], terms: Sequence[str]) -> set[str]:
    """Labels that name no source of the sound and contain one of the terms."""
    labels = [kind.label for kind in kinds if not kind.names_source]
    return {label for label, has in zip(labels, WordMatcher(labels).matches(terms), strict=True) if has.any()}


def _by_meaning(labels: Sequence[str], text: str, cosines: LabelCosines) -> dict[str, AskedSound]:
    """The labels that a text matches by meaning, at least as well as the source of the sound."""
    near = cosines(text, [SOUND_OF.format(label) for label in labels])
    meant = {label: near[SOUND_OF.format(label)] for label in labels} if near else {}
    found = {}
    for label, cosine in meant.items():
        if cosine >= MIN_COSINE:
            source = sound_kind(label).source[:1]
            own = cosines(text, [label, *source])
            if all(own[label] >= own[one] for one in source):
                found[label] = AskedSound(cosine, "fair")
    return found


def sound_words_in(words: Sequence[str], labels: Iterable[str]) -> set[str]:
    """The words that ask for a sound with one of the labels.

    >>> sound_words_in(["moos", "cow"], ["cow mooing"])
    {'moos'}
    """
    texts = [" ".join(sound_kind(label).sound_words) for label in labels]
    found = WordMatcher(texts).matches(words)
    return {word for at, word in enumerate(words) if found[:, at].any()}


def find_sounds(catalog: Catalog, asked: Mapping[str, AskedSound], allowed: Ids | None = None) -> list[SoundMatch]:
    """The sounds with the requested labels, at most ``MAX_EVENTS``, the most certain first."""
    out = []
    for at, (video, event) in enumerate(events_with_labels(catalog, asked, allowed, MAX_EVENTS) if asked else ()):
        share, limit = asked[event.label]
        heard: Level = "strong" if event.score >= STRONG_SCORE else "fair" if event.score >= FAIR_SCORE else "weak"
        level = min(heard, limit, key=LEVELS.index)
        out.append(SoundMatch(StreamHit(video, event.start, event.end, share + event.score, level), event.score, at))
    return out


def best_sounds(found: Sequence[SoundMatch]) -> list[StreamHit]:
    """Hits of the most certain sounds, best first, by the sum of word share and detector score."""
    surest = sorted(found, key=lambda match: (-match.score, match.hit.video, match.order))[:MAX_EVENTS]
    return sorted((match.hit for match in surest), key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))
