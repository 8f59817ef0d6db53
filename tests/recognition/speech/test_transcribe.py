"""A file is transcribed in parts; a resumed run gives the same result as a single one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech import transcribe
from momentseek.recognition.speech.transcribe import TranscribedPart, transcribe_file

LOUD = 0.5


class Beeps:
    """A recogniser of beeps: loud sound is speech, and each span of it is one word, its length."""

    def speech_spans(self, samples: Samples) -> list[tuple[float, float]]:
        return _loud(samples)

    def language(self, samples: Samples) -> tuple[str, float]:
        return "xx", 0.9

    def words(self, samples: Samples, language: str) -> list[SpokenWord]:
        return [SpokenWord(start, end, f" {end - start:.1f}s.") for start, end in _loud(samples)]


def _loud(samples: Samples) -> list[tuple[float, float]]:
    loud = np.diff(np.concatenate([[0], (np.abs(samples) > LOUD / 2).astype(int), [0]]))
    starts, ends = np.flatnonzero(loud == 1), np.flatnonzero(loud == -1)
    return [(s / SAMPLE_RATE, e / SAMPLE_RATE) for s, e in zip(starts, ends, strict=True)]


def track(beeps: Sequence[tuple[float, float]], seconds: float) -> Samples:
    samples = np.zeros(round(seconds * SAMPLE_RATE), np.float32)
    for start, end in beeps:
        samples[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)] = LOUD
    return samples


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcribe, "PART_SECONDS", 4)


def hear(samples: Samples, monkeypatch: pytest.MonkeyPatch, begin: float = 0.0) -> list[TranscribedPart]:
    monkeypatch.setattr(transcribe, "sound", lambda path: iter(np.array_split(samples, 7)))
    return list(transcribe_file(Beeps(), Path("film.mp4"), begin))


def spoken(parts: Sequence[TranscribedPart]) -> list[tuple[float, float, str]]:
    return [(w.start, w.end, w.text) for part in parts for cue in part.cues for w in cue.words]


@pytest.mark.usefixtures("short_parts")
def test_words_keep_their_times_over_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    beeps = [(0.5, 1.0), (3.0, 4.5), (6.0, 6.2), (9.0, 11.0)]
    parts = hear(track(beeps, 12.3), monkeypatch)
    assert spoken(parts) == [(s, e, f" {e - s:.1f}s.") for s, e in beeps]
    assert parts[-1].heard == pytest.approx(12.3)
    assert {part.language for part in parts if part.cues} == {"xx"}


@pytest.mark.usefixtures("short_parts")
def test_resumed_transcription_equals_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = track([(0.5, 1.0), (3.0, 4.5), (6.0, 6.2), (9.0, 11.0)], 12.3)
    whole = hear(samples, monkeypatch)
    for at in range(len(whole)):
        rest = hear(samples, monkeypatch, whole[at].heard)
        assert spoken(rest) == spoken(whole[at + 1 :])


def test_silence_needs_no_recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(Beeps):
        def words(self, samples: Samples, language: str) -> list[SpokenWord]:
            raise AssertionError("nobody speaks")

    monkeypatch.setattr(transcribe, "sound", lambda path: iter([np.zeros(SAMPLE_RATE, np.float32)]))
    (only,) = transcribe_file(Deaf(), Path("film.mp4"))
    assert only == TranscribedPart(1.0, None, ())


@given(st.lists(st.tuples(st.floats(0.4, 40), st.floats(0.5, 60)), max_size=12))
def test_windows_contain_every_second_of_speech_once(steps: list[tuple[float, float]]) -> None:
    at, stretches = 0.0, []
    for pause, length in steps:
        stretches.append((at + pause, at + pause + length))
        at += pause + length
    windows = list(transcribe._windows(stretches, at + 1))
    assert all(sum(e - s for s, e in window) <= transcribe.WINDOW_SECONDS + 1e-6 for window in windows)
    pieces = [piece for window in windows for piece in window]
    assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(pieces))
    for start, end in stretches:
        assert sum(max(0.0, min(end, e) - max(start, s)) for s, e in pieces) == pytest.approx(end - start)
