"""Trying a model that was just downloaded: all that can be known of it before videos are encoded with it.

What makes it unusable (a graph that does not load, inputs that we do not have, vectors of another length) is an error.
What only makes it doubtful is said: it should tell a red picture from a blue one, and give a picture the same vector
alone as beside others.
"""

from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from momentseek.encoders.dual_encoder.encoder import DualEncoder, load_dual_encoder
from momentseek.encoders.dual_encoder.files import find_files, read_json
from momentseek.encoders.hub.catalogue import HubModel
from momentseek.encoders.protocol import Pixels
from momentseek.errors import MomentseekError

COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (20, 40, 220)}
FAINT_COLOUR = (142, 120, 130)
SENTENCE = "a plain {} picture"
PICTURE_PIXELS = 64
SAME_COSINE = 0.999
"""Cosine below which two vectors of one picture are not the same."""
SPEECH_MARK = b"WhisperSpec\0"
"""What CTranslate2 writes into a Whisper model, behind a version and the mark's length."""


def try_model(model: HubModel, folder: Path) -> list[str]:
    """What is doubtful about a downloaded model, in sentences; raises if it cannot be used."""
    if model.kind == "speech":
        _check_speech(model, folder)
        return []
    find_files(folder)  # complains if something is missing
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return [f"{model.name} was not tried, since what runs it is missing: pip install 'momentseek[search]'"]
    return _try_encoder(model, load_dual_encoder(folder, name=f"hub:{model.name}"), folder)


def _try_encoder(model: HubModel, encoder: DualEncoder, folder: Path) -> list[str]:
    faint = plain_picture(FAINT_COLOUR)
    *rows, beside = encoder.encode_images([*(plain_picture(colour) for colour in COLOURS.values()), faint])
    lines = encoder.encode([SENTENCE.format(name) for name in COLOURS])
    if len(beside) != model.dim:
        raise MomentseekError(
            f"{folder}: its vectors have {len(beside)} numbers, {model.name} has {model.dim}; "
            "these are files of another model, so get them from another source (`source`)"
        )
    problems = []
    names = list(COLOURS)
    told = [names[int(np.argmax(lines @ row))] for row in rows]
    wrong = [pair for pair in zip(names, told, strict=True) if pair[0] != pair[1]]
    if wrong:
        problems.append(
            f"{model.name} takes a {wrong[0][0]} picture for a {wrong[0][1]} one; "
            "it may be exported otherwise than we read it, so look at some searches before you add many videos"
        )
    if float(encoder.encode_images([faint])[0] @ beside) < SAME_COSINE:
        problems.append(
            f"{model.name} gives a picture another vector alone than beside others; "
            "prefer an export without 8-bit weights"
        )
    return problems


def plain_picture(colour: tuple[int, int, int]) -> Pixels:
    """A picture of one colour."""
    return np.full((PICTURE_PIXELS, PICTURE_PIXELS, 3), colour, np.uint8)


def _check_speech(model: HubModel, folder: Path) -> None:
    for file in model.files:
        if not (folder / file).is_file():
            raise MomentseekError(f"{folder / file}: is missing; get it with: momentseek models get {model.name}")
        if file.endswith(".json") and not file.startswith("vocabulary"):
            read_json(folder / file)
    weights = folder / "model.bin"
    with weights.open("rb") as handle:
        head = handle.read(6 + len(SPEECH_MARK))
    length = struct.unpack("<IH", head[:6])[1] if len(head) > 6 else 0
    if length != len(SPEECH_MARK) or head[6:] != SPEECH_MARK:
        raise MomentseekError(
            f"{weights}: is no Whisper model in CTranslate2's form; get it from another source (`source`)"
        )
