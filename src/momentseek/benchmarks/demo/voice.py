"""A synthetic voice: eSpeak NG, whose library and voices are in the package espeakng-loader.

eSpeak NG is under the GPL, so nothing of it is loaded into this process. It runs in a separate process, which executes
this file as a program and returns only samples.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.errors import missing_package as missing

VOICE_RATE = 22_050
"""Sampling rate of the speech, in samples per second."""
WORDS_PER_MINUTE = 140
VOICE_PACKAGE = "espeakng_loader"
_SYNCHRONOUS, _UTF8, _RATE_PARAMETER, _WORD_EVENT = 2, 1, 1, 1


@dataclass(frozen=True, eq=False)
class SyntheticSpeech:
    """Synthesised speech: its samples at ``VOICE_RATE``, and the start of each word."""

    samples: NDArray[np.int16]
    words: tuple[tuple[float, str], ...]
    """Start in seconds and text of each word, as reported by eSpeak NG."""

    @property
    def seconds(self) -> float:
        """Length of the speech, in seconds."""
        return len(self.samples) / VOICE_RATE


def has_voice() -> bool:
    """Whether the synthetic voice is installed."""
    return find_spec(VOICE_PACKAGE) is not None


def speak(text: str, voice: str = "en-us") -> SyntheticSpeech:
    """Synthesise a text, in a separate process."""
    if not has_voice():
        raise missing("espeakng-loader", "demo")
    done = subprocess.run([sys.executable, __file__, voice], input=text.encode(), capture_output=True, check=False)
    head, _, samples = done.stdout.partition(b"\n")
    if done.returncode or not samples:
        raise MomentseekError(f"the synthetic voice {voice!r} cannot speak; reinstall the package espeakng-loader")
    words = tuple((start, text[at : at + size]) for start, at, size in json.loads(head))
    return SyntheticSpeech(np.frombuffer(samples, "<i2"), words)


class _Event(ctypes.Structure):
    """The library's event for a word, a sentence or an end (``espeak_EVENT`` in its header)."""

    _fields_ = (
        ("type", ctypes.c_int), ("identifier", ctypes.c_uint), ("place", ctypes.c_int), ("length", ctypes.c_int),
        ("milliseconds", ctypes.c_int), ("sample", ctypes.c_int), ("user", ctypes.c_void_p), ("id", ctypes.c_char * 8),
    )  # fmt: skip


def _synthesise(text: bytes, voice: str) -> bytes:
    loader = import_module(VOICE_PACKAGE)
    library = ctypes.CDLL(loader.get_library_path())
    spoken = bytearray()
    words: list[tuple[float, int, int]] = []

    def take(samples: ctypes._Pointer[ctypes.c_short], count: int, events: ctypes._Pointer[_Event]) -> int:
        if samples and count > 0:
            spoken.extend(ctypes.string_at(samples, 2 * count))
        at = 0
        while events[at].type:
            if events[at].type == _WORD_EVENT:  # positions are counted from 1, in characters
                words.append((events[at].milliseconds / 1000, events[at].place - 1, events[at].length))
            at += 1
        return 0

    kinds = ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
    callback = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(take)
    data = str(Path(loader.get_data_path())).encode()
    if library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0) != VOICE_RATE:
        return b""
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(voice.encode())
    library.espeak_SetParameter(_RATE_PARAMETER, WORDS_PER_MINUTE, 0)
    library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return json.dumps(words).encode() + b"\n" + bytes(spoken)


if __name__ == "__main__":
    sys.stdout.buffer.write(_synthesise(sys.stdin.buffer.read(), sys.argv[1]))
