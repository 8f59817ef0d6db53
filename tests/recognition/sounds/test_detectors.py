"""Events from window scores: hysteresis, pauses, wider kinds, and the same result in parts as in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from momentseek.recognition.sounds.detectors import SoundEvent, make_events, stretches
from momentseek.recognition.sounds.kinds import sound_kind, sound_kinds, wider_kinds

LABELS = ["dog barking", "dog growling", "siren", "music", "guitar music"]


def events(scores: dict[str, list[float]], parts: int | None = None) -> list[tuple[float, float, str, float]]:
    """Return the events of scores, one per second, processed in parts of ``parts`` windows."""
    length = max(map(len, scores.values()))
    table = np.array([scores.get(label, [0.0] * length) for label in LABELS], np.float32).T
    size = parts or length
    found = []
    for at in range(0, length, size):
        some = table[at : at + size]
        found += stretches(some, LABELS, np.arange(at, at + len(some) + 1, dtype=np.float64))
    return [(e.start, e.end, e.label, round(e.score, 2)) for e in make_events(found)]


@pytest.mark.parametrize("parts", [None, 1, 2, 3])
def test_hysteresis(parts):
    assert events({"siren": [0.1, 0.25, 0.6, 0.3, 0.2, 0.1]}, parts) == [(1.0, 5.0, "siren", 0.6)]
    assert events({"siren": [0.3, 0.3, 0.32, 0.3]}, parts) == []


def test_short_pauses_are_bridged_and_long_ones_not():
    assert events({"dog barking": [0.9, 0, 0, 0.5, 0, 0, 0, 0.7]}) == [
        (0.0, 4.0, "dog barking", 0.9),
        (7.0, 8.0, "dog barking", 0.7),
    ]
    # what never was sure does not bridge a pause
    assert len(events({"dog barking": [0.9, 0, 0, 0.3, 0, 0, 0.7]})) == 2


def test_narrower_kind_replaces_the_wider_one():
    assert [e[2] for e in events({"dog barking": [0.8, 0.8, 0.8], "dog growling": [0.7, 0.7, 0.7]})] == ["dog growling"]
    both = events({"music": [0.99] * 10, "guitar music": [0, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0]})
    assert [(e[0], e[1], e[2]) for e in both] == [(0.0, 10.0, "music"), (3.0, 5.0, "guitar music")]
    assert len(events({"siren": [0.9] * 3, "dog barking": [0.9] * 3})) == 2


def test_silence_has_no_events():
    assert events({"siren": [0.0] * 5}) == []
    assert make_events([]) == []
    assert make_events([SoundEvent(0, 1, "siren", 0.3)]) == []


def test_every_kind_has_unique_words_and_a_known_parent():
    kinds = sound_kinds()
    assert len(kinds) > 200
    classes = [name for kind in kinds.values() for name in kind.classes]
    assert len(classes) == len(set(classes))
    assert not {"Speech", "Conversation", "Silence", "Narration, monologue"} & set(classes)
    for kind in kinds.values():
        assert not kind.parent or kind.parent in kinds
        assert kind.label not in {wider.label for wider in wider_kinds(kind.label)}
    assert sound_kind("a thing of one's own").classes == ()
