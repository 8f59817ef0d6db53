"""Sounds that a query asks for, by the words and the meaning of their labels: "a dog barks" finds ``dog barking``.

Only words for a sound ask for one. "A dog" is something to be seen: whoever wants the bark says so, or says "the sound
of a dog". People who make a sound need not be in its label: "a man laughs" asks for ``laughter``, and is found less
surely. A query with no word for any known sound may still mean one that was heard; that is fair at most.
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
"""Sounds that are judged."""
MIN_SHARE = 0.6
"""Share of the words that a label must have."""
STRONG_SCORE, FAIR_SCORE = 0.8, 0.5
"""How sure a detector must be of a sound for a strong hit, and for a fair one (docs/sounds.md)."""
MIN_COSINE = 0.65
"""Cosine to ``SOUND_OF`` a label from which a query means it (MiniLM; docs/sounds.md)."""
SOUND_OF = "the sound of {}"
_HEARING = "audible audio hear heard hearing hears listen loud loudly noise noises sound sounding sounds"
_ANYBODY = "anybody boy boys girl girls guy lady man men people person somebody woman women"
HEARING_WORDS = frozenset(_HEARING.split())
"""Words that make any sound one that is asked for."""
ANYBODY = frozenset(_ANYBODY.split())
"""People, who need not be in a label."""

LabelCosines = Callable[[str, Sequence[str]], Mapping[str, float]]
"""How near a text is in meaning to each of some labels; empty where no encoder can tell."""


class AskedSound(NamedTuple):
    """How well a label is what was asked for."""

    share: float
    """Share of the words that it has, or its cosine."""
    level: Level
    """The surest that a hit on it may be."""


class SoundMatch(NamedTuple):
    """A sound that was asked for."""

    hit: StreamHit
    score: float
    """How sure the detector is of it."""
    order: int
    """Its place among the equals of its video."""


class _KindWords:
    """The words of kinds of sounds, ready to be matched with those of queries."""

    def __init__(self, kinds: Sequence[SoundKind]) -> None:
        self.kinds = kinds
        texts = [*(kind.sound_words for kind in kinds), *(kind.source for kind in kinds)]
        self._matcher = WordMatcher([" ".join(words) for words in texts])
        self._family = np.eye(len(kinds), dtype=np.int32)
        place = {kind.label: at for at, kind in enumerate(kinds)}
        for at, kind in enumerate(kinds):
            self._family[at, [place[one.label] for one in wider_kinds(kind.label)]] = 1

    def matches(self, terms: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """``(kinds, terms)`` twice: whether a term asks for the sound, and whether it names what makes it."""
        asks, source = np.split(self._matcher.matches(terms), 2)
        return asks, source

    def with_wider(self, matches: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Matches of kinds, with those of the wider kinds that each belongs to."""
        found: NDArray[np.bool_] = self._family @ matches.astype(np.int32) > 0
        return found


@cache
def _known_words() -> _KindWords:
    return _KindWords(list(sound_kinds().values()))


def asked_sounds(labels: Sequence[str], text: str, cosines: LabelCosines) -> dict[str, AskedSound]:
    """Those of some labels for which a text asks.

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
        other = plain and kind.names_source and not source[at].any()  # "singing" asks for no birds
        if not other or plain.intersection(wider.label for wider in wider_kinds(kind.label)):
            level: Level = "strong" if sure[at] else "fair" if named[at] else "weak"
            found[kind.label] = AskedSound(float(share[at]), level)
    return found


def _named_labels(kinds: Sequence[SoundKind], terms: Sequence[str]) -> set[str]:
    """Labels of kinds that say nothing of what makes the sound, and of which a term has a word."""
    labels = [kind.label for kind in kinds if not kind.names_source]
    return {label for label, has in zip(labels, WordMatcher(labels).matches(terms), strict=True) if has.any()}


def _by_meaning(labels: Sequence[str], text: str, cosines: LabelCosines) -> dict[str, AskedSound]:
    """The labels that a text means, and means more than what makes the sound."""
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
    """Those of some words that ask for sounds with one of some labels.

    >>> sound_words_in(["moos", "cow"], ["cow mooing"])
    {'moos'}
    """
    texts = [" ".join(sound_kind(label).sound_words) for label in labels]
    found = WordMatcher(texts).matches(words)
    return {word for at, word in enumerate(words) if found[:, at].any()}


def find_sounds(catalog: Catalog, asked: Mapping[str, AskedSound], allowed: Ids | None = None) -> list[SoundMatch]:
    """The surest sounds with the labels that were asked for, ``MAX_EVENTS`` at most."""
    out = []
    for at, (video, event) in enumerate(events_with_labels(catalog, asked, allowed, MAX_EVENTS) if asked else ()):
        share, limit = asked[event.label]
        heard: Level = "strong" if event.score >= STRONG_SCORE else "fair" if event.score >= FAIR_SCORE else "weak"
        level = min(heard, limit, key=LEVELS.index)
        out.append(SoundMatch(StreamHit(video, event.start, event.end, share + event.score, level), event.score, at))
    return out


def best_sounds(found: Sequence[SoundMatch]) -> list[StreamHit]:
    """Hits of the surest of some sounds, best first: by the words, then by the score."""
    surest = sorted(found, key=lambda match: (-match.score, match.hit.video, match.order))[:MAX_EVENTS]
    return sorted((match.hit for match in surest), key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))
