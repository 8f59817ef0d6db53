"""Hours of noise cost little: no voice is detected, so the recogniser does not run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech import transcribe
from momentseek.recognition.speech.models import find_speech
from momentseek.recognition.speech.transcribe import transcribe_file


def noises() -> dict[str, Samples]:
    drawn = np.random.default_rng(0).standard_normal(5 * SAMPLE_RATE)
    spectrum = np.fft.rfft(drawn)
    pink = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))), len(drawn))
    time = np.arange(len(drawn)) / SAMPLE_RATE
    chord = sum(np.sin(2 * np.pi * hertz * time) for hertz in (220, 277, 330))
    found = {"white": drawn, "pink": pink, "chord": chord, "pulses": drawn * (np.sin(8 * np.pi * time) > 0)}
    return {name: (0.5 * wave / np.abs(wave).max()).astype(np.float32) for name, wave in found.items()}


@pytest.mark.parametrize("kind", ["white", "pink", "chord", "pulses"])
def test_no_voice_is_found_in_noise(kind: str) -> None:
    pytest.importorskip("faster_whisper")
    assert find_speech(noises()[kind]) == []


def test_ten_hours_of_noise_take_little_memory_and_no_recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        held = 0

        def speech_spans(self, samples: Samples) -> list[tuple[float, float]]:
            self.held = max(self.held, len(samples))
            return []

        def language(self, samples: Samples) -> tuple[str, float]:
            raise AssertionError

        def words(self, samples: Samples, language: str) -> list[SpokenWord]:
            raise AssertionError

    def noise(path: Path) -> Iterator[Samples]:
        minute = np.zeros(60 * SAMPLE_RATE, np.float32)
        yield from repeat(minute, 600)

    monkeypatch.setattr(transcribe, "sound", noise)
    deaf = Deaf()
    parts = list(transcribe_file(deaf, Path("noise.mp4")))
    assert parts[-1].heard == 36_000.0
    assert all(not part.cues for part in parts)
    assert deaf.held <= transcribe.PART_SECONDS * SAMPLE_RATE
