"""Detectors of sounds other than speech (applause, barking, rain) by name, and events made from their scores.

``yamnet`` is one of them (:mod:`momentseek.recognition.sounds.yamnet`). You can register your own under a name;
:meth:`momentseek.Library.listen` then stores the sounds it detects, and searches find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from momentseek.core.registry import Registry
from momentseek.media.decode import Samples
from momentseek.recognition.sounds.kinds import wider_kinds


@dataclass(frozen=True)
class SoundEvent:
    """A sound with start and end in seconds, a label in plain words, and a score from 0 to 1."""

    start: float
    end: float
    label: str
    score: float = 1.0


@runtime_checkable
class SoundDetector(Protocol):
    """Recognises sounds in mono samples at 16,000 per second, from -1 to 1."""

    @property
    def name(self) -> str:
        """Its name, for users."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything its results depend on, such as weights; videos are processed again when it changes."""
        ...

    def detect(self, blocks: Iterable[Samples]) -> Iterable[SoundEvent]:
        """Return the sounds of a video, given its samples from the start in blocks of a second or more."""
        ...


SOUND_DETECTORS: Registry[Callable[[], SoundDetector]] = Registry("sound detector")
"""Loaders of sound detectors by name."""


def register_sounds(name: str, load: Callable[[], SoundDetector]) -> None:
    """Register your own sound detector, for use as ``library.listen(detector=name)``."""
    SOUND_DETECTORS.add(name, load)


# Events from the scores of short windows.
#
# A sound continues while its scores stay above a low limit, and counts if one of them reaches a high one (hysteresis).
# Spans of one kind with short pauses between them are one event: a dog that barks five times. If a narrower kind has
# nearly the same score throughout, the wider one is dropped.

LOW_SCORE = 0.15
"""A sound continues down to this score."""
HIGH_SCORE = 0.33
"""A sound counts only if it reaches this score."""
MAX_PAUSE_SECONDS = 2.0
"""Longest pause within one event."""
COVERED_SHARE = 0.7
"""A narrower kind replaces an event if it covers at least this share of its time."""
SAME_SCORE = 0.2
"""The narrower kind's score may be lower by this much."""
TOUCHING_SECONDS = 1e-3


def stretches(scores: NDArray[np.float32], labels: Sequence[str], edges: NDArray[np.float64]) -> list[SoundEvent]:
    """Return the spans of each kind of sound with their best scores; most scores are too low for events.

    ``scores`` is ``(windows, labels)``, and window ``i`` lasts from ``edges[i]`` to ``edges[i + 1]``.

    >>> found = stretches(np.array([[0.1], [0.5], [0.3], [0.0]], np.float32), ["siren"], np.arange(5.0))
    >>> [(event.start, event.end, event.label, round(event.score, 2)) for event in found]
    [(1.0, 3.0, 'siren', 0.5)]
    """
    found = []
    for column in np.flatnonzero((scores >= LOW_SCORE).any(axis=0)).tolist():
        row = scores[:, column]
        changes = np.diff(np.concatenate([[0], (row >= LOW_SCORE).astype(np.int8), [0]]))
        for first, last in zip(np.flatnonzero(changes > 0), np.flatnonzero(changes < 0), strict=True):
            best = round(float(row[first:last].max()), 3)
            found.append(SoundEvent(float(edges[first]), float(edges[last]), labels[column], best))
    return found


def make_events(found: Iterable[SoundEvent]) -> list[SoundEvent]:
    """Merge the spans of a whole file into events, in order.

    >>> parts = [SoundEvent(0, 2, "dog barking", 0.3), SoundEvent(2, 3, "dog barking", 0.9),
    ...          SoundEvent(4, 5, "dog barking", 0.5), SoundEvent(6, 7, "siren", 0.3)]
    >>> make_events(parts)
    [SoundEvent(start=0, end=5, label='dog barking', score=0.9)]
    """
    by_label: dict[str, list[SoundEvent]] = {}
    for event in sorted(found, key=lambda event: (event.start, event.end)):
        by_label.setdefault(event.label, []).append(event)
    for label, some in by_label.items():
        whole = _join(some, TOUCHING_SECONDS)  # a span is cut where a part of the file ends
        by_label[label] = _join([event for event in whole if event.score >= HIGH_SCORE], MAX_PAUSE_SECONDS)
    narrower: dict[str, list[SoundEvent]] = {}
    for label, some in by_label.items():
        for kind in wider_kinds(label):
            narrower.setdefault(kind.label, []).extend(some)
    events = [
        event
        for label, some in by_label.items()
        for event in some
        if not any(_stands_for(other, event) for other in narrower.get(label, ()))
    ]
    return sorted(events, key=lambda event: (event.start, event.end, event.label))


def _join(events: Sequence[SoundEvent], pause: float) -> list[SoundEvent]:
    """Join events of one kind that are at most ``pause`` seconds apart."""
    out: list[SoundEvent] = []
    for event in events:
        if out and event.start - out[-1].end <= pause:
            out[-1] = replace(out[-1], end=max(out[-1].end, event.end), score=max(out[-1].score, event.score))
        else:
            out.append(event)
    return out


def _stands_for(narrow: SoundEvent, wide: SoundEvent) -> bool:
    shared = min(narrow.end, wide.end) - max(narrow.start, wide.start)
    return shared >= COVERED_SHARE * (wide.end - wide.start) and narrow.score >= wide.score - SAME_SCORE
