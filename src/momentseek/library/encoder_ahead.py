"""Loading a library's encoder ahead of its first use, while a command loads and opens all else that it needs."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

from momentseek.encoders.registry import MODEL_PREFIX, image_text_encoder
from momentseek.encoders.runtime import onnx_runtime
from momentseek.errors import MomentseekError
from momentseek.library.database import Database

TURN_SECONDS = 5e-4
"""How long a thread may run while another waits: the one that loads mostly works outside of Python, and would wait ten
times as long for each of its few words in it."""


def load_ahead(folder: Path) -> threading.Thread | None:
    """Begin to load the encoder of the library in a folder, in a thread; None where there is none to load.

    Who asks for the encoder meanwhile waits until it is there. What goes wrong here is said there.
    """
    try:
        database = Database(folder)
    except (MomentseekError, OSError):
        return None
    try:
        specs = [str(spec) for (spec,) in database.rows("SELECT spec FROM encoders WHERE stream = 'vision'")]
    except MomentseekError:
        return None
    finally:
        database.close()
    if not specs or specs[0].startswith(MODEL_PREFIX):  # a model is opened with the library
        return None
    with suppress(MomentseekError):
        onnx_runtime()  # two threads that import at once hinder each other; what follows leaves Python to the first
    thread = threading.Thread(target=_load, args=(specs[0], sys.getswitchinterval()), name="encoder")
    sys.setswitchinterval(TURN_SECONDS)
    thread.start()
    return thread


def _load(spec: str, usual_turn: float) -> None:
    try:
        with suppress(Exception):
            image_text_encoder(spec)
    finally:
        sys.setswitchinterval(usual_turn)
