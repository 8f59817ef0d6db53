"""Whisper by faster-whisper: 8-bit weights, beam search, voice activity first, word times.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022). Voice activity is Silero's, which
comes with the package: without it, half a minute of silence is heard as "you". A window does not see the words of
the one before it, so that one mistake is not carried on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from momentseek.media.sound import SAMPLE_RATE, Samples
from momentseek.optional import optional_module
from momentseek.transcription.transcriber import SPEECH_EXTRA
from momentseek.transcription.transcript import SpokenWord

BEAM = 5
MAX_SILENCE_PROBABILITY = 0.6
"""A segment that is more probably no speech than this, and not heard well, is dropped."""
MIN_LOG_PROBABILITY = -1.0
MAX_COMPRESSION = 2.4
"""A segment whose text compresses better than this repeats itself, as a recogniser does in noise; it is dropped."""
LANGUAGE_SECONDS = 30
VAD_PAD_MS = 50
"""Milliseconds around voice activity that count as speech."""
SEED = 0


class Whisper:
    """A Whisper model that hears words in samples."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        library = optional_module("faster_whisper", SPEECH_EXTRA)
        self._model: Any = library.WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
        )

    def has_speech(self, samples: Samples) -> list[tuple[float, float]]:
        """Start and end in seconds of each stretch in which somebody speaks."""
        return find_speech(samples)

    def language(self, samples: Samples) -> tuple[str, float]:
        """The language spoken, as a code such as ``en``, and how sure that is, 0 to 1."""
        code, probability, _ = self._model.detect_language(samples[: LANGUAGE_SECONDS * SAMPLE_RATE])
        return str(code), float(probability)

    def words(self, samples: Samples, language: str) -> list[SpokenWord]:
        """The words that are said and when, in seconds from the first sample; the same for the same samples."""
        optional_module("ctranslate2", SPEECH_EXTRA).set_random_seed(SEED)
        segments, _ = self._model.transcribe(
            samples, language=language, beam_size=BEAM, word_timestamps=True, condition_on_previous_text=False
        )
        return [
            SpokenWord(round(float(word.start), 3), round(float(word.end), 3), word.word)
            for segment in segments
            if not _is_noise(segment)
            for word in segment.words or ()
        ]


def find_speech(samples: Samples) -> list[tuple[float, float]]:
    """Start and end in seconds of each stretch of voice; noise and music have none, at 0.2 % of their time."""
    vad: Any = optional_module("faster_whisper.vad", SPEECH_EXTRA)
    found = vad.get_speech_timestamps(samples, vad.VadOptions(min_silence_duration_ms=500, speech_pad_ms=VAD_PAD_MS))
    return [(each["start"] / SAMPLE_RATE, each["end"] / SAMPLE_RATE) for each in found]


def _is_noise(segment: Any) -> bool:
    unsure = segment.no_speech_prob > MAX_SILENCE_PROBABILITY and segment.avg_logprob < MIN_LOG_PROBABILITY
    return bool(unsure or segment.compression_ratio > MAX_COMPRESSION)
