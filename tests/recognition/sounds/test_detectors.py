"""Scores of windows become events: hysteresis, pauses, wider kinds, and the same in parts as in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from momentseek.recognition.sounds.detectors import SoundEvent, make_events, stretches
from momentseek.recognition.sounds.kinds import sound_kind, sound_kinds, wider_kinds

LABELS = ["dog barking", "dog growling", "siren", "music", "guitar music"]


def events(scores: dict[str, list[float]], parts: int | None = None) -> list[tuple[float, float, str, float]]:
    """The events of scores, one a second, heard in parts of so many windows."""
    length = max(map(len, scores.values()))
    table = np.array([scores.get(label, [0.0] * length) for label in LABELS], np.float32).T
    size = parts or length
    found = []
    for at in range(0, length, size):
        some = table[at : at + size]
        found += stretches(some, LABELS, np.arange(at, at + len(some) + 1, dtype=np.float64))
    return [(e.start, e.end, e.label, round(e.score, 2)) for e in make_events(found)]


@pytest.mark.parametrize("parts", [None, 1, 2, 3])
def test_a_sound_begins_when_sure_and_goes_on_while_it_is_likely(parts):
    assert events({"siren": [0.1, 0.25, 0.6, 0.3, 0.2, 0.1]}, parts) == [(1.0, 5.0, "siren", 0.6)]
    assert events({"siren": [0.3, 0.3, 0.32, 0.3]}, parts) == []


def test_a_short_pause_is_within_one_event_and_a_long_one_is_not():
    assert events({"dog barking": [0.9, 0, 0, 0.5, 0, 0, 0, 0.7]}) == [
        (0.0, 4.0, "dog barking", 0.9),
        (7.0, 8.0, "dog barking", 0.7),
    ]
    # what never was sure does not bridge a pause
    assert len(events({"dog barking": [0.9, 0, 0, 0.3, 0, 0, 0.7]})) == 2


def test_a_narrower_kind_stands_for_the_wider_one_where_it_is_as_sure():
    assert [e[2] for e in events({"dog barking": [0.8, 0.8, 0.8], "dog growling": [0.7, 0.7, 0.7]})] == ["dog growling"]
    both = events({"music": [0.99] * 10, "guitar music": [0, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0]})
    assert [(e[0], e[1], e[2]) for e in both] == [(0.0, 10.0, "music"), (3.0, 5.0, "guitar music")]
    assert len(events({"siren": [0.9] * 3, "dog barking": [0.9] * 3})) == 2


def test_nothing_is_heard_in_silence():
    assert events({"siren": [0.0] * 5}) == []
    assert make_events([]) == []
    assert make_events([SoundEvent(0, 1, "siren", 0.3)]) == []


def test_every_kind_has_words_that_are_its_own_and_a_known_parent():
    kinds = sound_kinds()
    assert len(kinds) > 200
    classes = [name for kind in kinds.values() for name in kind.classes]
    assert len(classes) == len(set(classes))
    assert not {"Speech", "Conversation", "Silence", "Narration, monologue"} & set(classes)
    for kind in kinds.values():
        assert not kind.parent or kind.parent in kinds
        assert kind.label not in {wider.label for wider in wider_kinds(kind.label)}
    assert sound_kind("a thing of one's own").classes == ()
