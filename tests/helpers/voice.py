"""A synthetic voice for tests: eSpeak NG, whose library and voices the package espeakng-loader carries."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.optional import optional_module

VOICE_RATE = 22_050
"""Samples a second of what is spoken."""
WORDS_PER_MINUTE = 140
_SYNCHRONOUS, _UTF8, _RATE_PARAMETER = 2, 1, 1


def speak(text: str, voice: str = "en-us") -> NDArray[np.int16]:
    """A text as samples at ``VOICE_RATE``; spoken in a process of its own, as the library keeps one state for all."""
    optional_module("espeakng_loader", "dev")
    command = [sys.executable, __file__, voice]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise MomentseekError(f"the synthetic voice {voice!r} cannot speak; reinstall the package espeakng-loader")
    return np.frombuffer(done.stdout, "<i2")


def _synthesise(text: bytes, voice: str) -> bytes:
    loader = optional_module("espeakng_loader", "dev")
    library = ctypes.CDLL(loader.get_library_path())
    spoken = bytearray()

    def take(samples: ctypes._Pointer[ctypes.c_short], count: int, _: int | None) -> int:
        if samples and count > 0:
            spoken.extend(ctypes.string_at(samples, 2 * count))
        return 0

    data = str(Path(loader.get_data_path())).encode()
    if library.espeak_Initialize(_SYNCHRONOUS, 0, data, 0) != VOICE_RATE:
        return b""
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)(take)
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(voice.encode())
    library.espeak_SetParameter(_RATE_PARAMETER, WORDS_PER_MINUTE, 0)
    library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return bytes(spoken)


if __name__ == "__main__":
    sys.stdout.buffer.write(_synthesise(sys.stdin.buffer.read(), sys.argv[1]))
