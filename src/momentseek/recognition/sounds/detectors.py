"""Detectors of sounds that are not speech (applause, a dog that barks, rain), by name.

``yamnet`` is one of them (:mod:`momentseek.recognition.sounds.yamnet`). One of your own is registered by a name;
:meth:`momentseek.Library.listen` then keeps what it hears, and searches find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from momentseek.core.registry import Registry
from momentseek.media.decode import Samples


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
