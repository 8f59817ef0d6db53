"""Speech recognition models by name, and their files.

A transcriber is ``whisper-base`` (its weights come with the extra ``speech``), the name of a model that ``momentseek
models get`` has downloaded (``whisper-small``), or a folder (its path, or ``whisper:FOLDER``) with a Whisper model in
CTranslate2's format, as used by faster-whisper. Its fingerprint is stored with the transcript.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, missing_package, optional_module
from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.weights.catalog import HUB_MODELS
from momentseek.recognition.weights.files import (
    are_installed,
    cache_folder,
    hashes,
    model_in_environment,
    packaged_weights,
    verify,
)
from momentseek.recognition.weights.hub import check_model

DEFAULT_TRANSCRIBER = "whisper-base"
SPEECH_EXTRA = "speech"
TRANSCRIBE_VARIABLE = "MOMENTSEEK_TRANSCRIBE"
"""Environment variable that turns transcription off (``off``), or names another transcriber."""
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json")
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights would give other words."""

_PART1, _PART2 = (packaged_weights(f"whisper-base-part{part}") for part in (1, 2))
WHOLE_MODEL = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
"""SHA-256 of Systran/faster-whisper-base's model.bin, which is assembled from two parts."""


class Transcriber(Protocol):
    """Recognises words in samples at 16,000 per second."""

    def speech_spans(self, samples: Samples) -> list[tuple[float, float]]:
        """Return start and end in seconds of each span of speech."""
        ...

    def language(self, samples: Samples) -> tuple[str, float]:
        """Return the code of the spoken language, such as ``en``, and its probability."""
        ...

    def words(self, samples: Samples, language: str) -> list[SpokenWord]:
        """Return the spoken words with times in seconds from the first sample."""
        ...


def is_installed() -> bool:
    """Whether the default transcriber's package is installed and its weights are downloaded."""
    return find_spec("faster_whisper") is not None and are_installed(_PART1, _PART2)


def default_transcriber() -> str | None:
    """Return the default transcriber of ``add``: the environment's, else the packaged one if it is installed."""
    chosen = model_in_environment(TRANSCRIBE_VARIABLE)
    if isinstance(chosen, str):
        return chosen
    return DEFAULT_TRANSCRIBER if chosen is not False and is_installed() else None


def transcriber_fingerprint(spec: str) -> str:
    """Return a hash that changes whenever a transcriber's results do."""
    if spec == DEFAULT_TRANSCRIBER:
        parts = [WHOLE_MODEL, _PART1.files["tokenizer.json"]]
    else:
        folder = model_folder(spec)
        parts = list(hashes([folder / name for name in MODEL_FILES]).values())
    return hashlib.sha256("\n".join([RECIPE, *parts]).encode()).hexdigest()


def model_folder(spec: str) -> Path:
    """Return the folder with a transcriber's files; the packaged one is assembled in the cache at first use."""
    if find_spec("faster_whisper") is None:
        raise missing_package("faster-whisper", SPEECH_EXTRA)
    if spec == DEFAULT_TRANSCRIBER:
        return _packaged_folder()
    downloads = [model.name for model in HUB_MODELS.values() if model.kind == "speech"]
    if spec in downloads:
        return check_model(HUB_MODELS[spec])
    kind, _, place = spec.partition(":")
    if Path(spec).expanduser().is_dir():
        kind, place = "whisper", spec
    if kind != "whisper" or not place:
        names = ", ".join((DEFAULT_TRANSCRIBER, *downloads))
        raise MomentseekError(
            f"there is no transcriber {spec!r}; give {names}, or a FOLDER with a faster-whisper model"
        )
    folder = Path(place).expanduser()
    for name in MODEL_FILES:
        if not (folder / name).is_file():
            raise MomentseekError(
                f"{folder / name} is missing; a faster-whisper model has {', '.join(MODEL_FILES)}: download it again"
            )
    return folder


def _packaged_folder() -> Path:
    """Return the packaged weights as a folder for faster-whisper."""

    first, second = verify(_PART1), verify(_PART2)
    folder = cache_folder() / "made" / f"whisper-base-{WHOLE_MODEL[:16]}"
    model = folder / "model.bin"
    if not model.is_file() or hashes([model])[model] != WHOLE_MODEL:
        whole = (first / "model.bin.part1").read_bytes() + (second / "model.bin.part2").read_bytes()
        if hashlib.sha256(whole).hexdigest() != WHOLE_MODEL:
            raise MomentseekError("the parts of whisper-base do not fit together; reinstall the extra speech")
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(model, whole)
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        wanted = (first / name).read_bytes()
        if not (folder / name).is_file() or (folder / name).read_bytes() != wanted:
            write_bytes(folder / name, wanted)
    return folder


BEAM = 5
MAX_SILENCE_PROBABILITY = 0.6
"""A segment with a higher no-speech probability and a low word probability is dropped."""
MIN_LOG_PROBABILITY = -1.0
MAX_COMPRESSION = 2.4
"""A segment whose text compresses better than this is repetitive, as recognised noise is; it is dropped."""
LANGUAGE_SECONDS = 30
VAD_PAD_MS = 50
"""Milliseconds around voice activity that count as speech."""
SEED = 0


class Whisper:
    """A Whisper model that recognises words in samples."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        library = optional_module("faster_whisper", SPEECH_EXTRA)
        self._model: Any = library.WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
        )

    def speech_spans(self, samples: Samples) -> list[tuple[float, float]]:
        """Return start and end in seconds of each span of speech."""
        return find_speech(samples)

    def language(self, samples: Samples) -> tuple[str, float]:
        """Return the code of the spoken language, such as ``en``, and its probability."""
        code, probability, _ = self._model.detect_language(samples[: LANGUAGE_SECONDS * SAMPLE_RATE])
        return str(code), float(probability)

    def words(self, samples: Samples, language: str) -> list[SpokenWord]:
        """Return the spoken words with times in seconds from the first sample; deterministic."""
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
    """Return start and end in seconds of each span of voice; in noise and music, 0.2 % of the time is misdetected."""
    vad: Any = optional_module("faster_whisper.vad", SPEECH_EXTRA)
    found = vad.get_speech_timestamps(samples, vad.VadOptions(min_silence_duration_ms=500, speech_pad_ms=VAD_PAD_MS))
    return [(each["start"] / SAMPLE_RATE, each["end"] / SAMPLE_RATE) for each in found]


def _is_noise(segment: Any) -> bool:
    unsure = segment.no_speech_prob > MAX_SILENCE_PROBABILITY and segment.avg_logprob < MIN_LOG_PROBABILITY
    return bool(unsure or segment.compression_ratio > MAX_COMPRESSION)
