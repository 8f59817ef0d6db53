"""Detectors of sounds that are not speech (applause, a dog that barks, rain), by name, and events made of their scores.

``yamnet`` is one of them (:mod:`momentseek.recognition.sounds.yamnet`). One of your own is registered by a name;
:meth:`momentseek.Library.listen` then keeps what it hears, and searches find it.
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
    """A sound between two times (seconds): what it is, in plain words, and how sure that is, from 0 to 1."""

    start: float
    end: float
    label: str
    score: float = 1.0


@runtime_checkable
class SoundDetector(Protocol):
    """Recognises sounds in samples at 16,000 a second, one channel, from -1 to 1."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def fingerprint(self) -> str:
        """What its answers depend on (the weights' hash, say): videos are listened to again when it changes."""
        ...

    def detect(self, blocks: Iterable[Samples]) -> Iterable[SoundEvent]:
        """The sounds of a video, given its samples from the beginning in blocks of a second or more."""
        ...


SOUND_DETECTORS: Registry[Callable[[], SoundDetector]] = Registry("sound detector")
"""What loads each detector of sounds, by its name."""


def register_sounds(name: str, load: Callable[[], SoundDetector]) -> None:
    """Add a detector of sounds of your own, so that ``library.listen(detector=name)`` finds it."""
    SOUND_DETECTORS.add(name, load)


# from scores of short windows to events
#
# A kind of sound goes on while its scores stay above a low limit, and counts if one of them reaches a high one
# (hysteresis). Stretches of one kind with a short pause between them are one event: a dog that barks five times. Where
# a narrower kind was heard as surely all along, the wider one is not said again.

LOW_SCORE = 0.15
"""Score down to which a sound goes on."""
HIGH_SCORE = 0.33
"""Score that a sound must reach to count."""
MAX_PAUSE_SECONDS = 2.0
"""Longest pause within one event."""
COVERED_SHARE = 0.7
"""Share of an event's time from which a narrower kind stands for it."""
SAME_SCORE = 0.2
"""By how much the narrower kind may be less sure for that."""
TOUCHING_SECONDS = 1e-3


def stretches(scores: NDArray[np.float32], labels: Sequence[str], edges: NDArray[np.float64]) -> list[SoundEvent]:
    """The stretches in which kinds of sounds go on, each with its best score; most are too unsure to be events.

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
    """The events that the stretches of a whole file make, in order.

    >>> parts = [SoundEvent(0, 2, "dog barking", 0.3), SoundEvent(2, 3, "dog barking", 0.9),
    ...          SoundEvent(4, 5, "dog barking", 0.5), SoundEvent(6, 7, "siren", 0.3)]
    >>> make_events(parts)
    [SoundEvent(start=0, end=5, label='dog barking', score=0.9)]
    """
    by_label: dict[str, list[SoundEvent]] = {}
    for event in sorted(found, key=lambda event: (event.start, event.end)):
        by_label.setdefault(event.label, []).append(event)
    for label, some in by_label.items():
        whole = _join(some, TOUCHING_SECONDS)  # a stretch is cut where a part of the file ends
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
    """Events of one kind in order, joined where no more than ``pause`` seconds lie between two."""
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
