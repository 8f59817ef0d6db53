"""Which readers there are, and what each is made of.

A reader is named by ``ppocr-small`` (the weights that come with the extra ``ocr``) or ``ppocr:FOLDER``, a folder with
another PP-OCR model as ``det.onnx`` and ``rec.onnx``, for instance for another script. Its fingerprint is stored with
what it read.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from momentseek.encoders.hashes import hashes
from momentseek.encoders.wheel import PackagedWeights, locate, verify
from momentseek.errors import MomentseekError
from momentseek.lettering.line import ReadLine
from momentseek.lettering.slots import SLOT_SECONDS
from momentseek.media.picture import Pixels
from momentseek.optional import missing

DEFAULT_READER = "ppocr-small"
OCR_EXTRA = "ocr"
OCR_VARIABLE = "MOMENTSEEK_OCR"
"""Environment variable that switches reading on (``on``) or off, or names another reader."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights would read other lines."""

_WEIGHTS = PackagedWeights(
    package="rapidocr",
    version="3.10.0",
    folder="rapidocr/models",
    files={
        "PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
        "PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
    },
    extra=OCR_EXTRA,
)


class LineReader(Protocol):
    """Reads the lines that stand in a picture."""

    def read(self, pixels: Pixels) -> list[ReadLine]:
        """The lines of an RGB picture that are surely there."""
        ...


def is_installed() -> bool:
    """Whether the default reader can run here: its program and its weights are installed."""
    if find_spec("rapidocr") is None:
        return False
    try:
        locate(_WEIGHTS)
    except MomentseekError:
        return False
    return True


def default_reader() -> str | None:
    """The reader that ``add`` uses if none is named: what the environment says, else none."""
    named = os.environ.get(OCR_VARIABLE, "").strip()
    if named.lower() in ("", "0", "no", "off", "false"):
        return None
    return DEFAULT_READER if named.lower() in ("1", "yes", "on", "true") else named


def reader_print(spec: str, every: float = SLOT_SECONDS) -> str:
    """A hash that changes with the lines that a reader reads, one frame ``every`` so many seconds of a shot."""
    if spec == DEFAULT_READER:
        model_files(spec)
        parts = sorted(_WEIGHTS.files.values())
    else:
        parts = list(hashes(model_files(spec)).values())
    return hashlib.sha256("\n".join([RECIPE, f"{every:g}", *parts]).encode()).hexdigest()


def model_files(spec: str, *, check: bool = False) -> tuple[Path, Path]:
    """The files of the detector and of the recogniser; with ``check``, packaged ones are proven to be those tested."""
    if find_spec("rapidocr") is None:
        raise missing("rapidocr", OCR_EXTRA)
    if spec == DEFAULT_READER:
        folder = verify(_WEIGHTS) if check else locate(_WEIGHTS)
        return folder / "PP-OCRv6_det_small.onnx", folder / "PP-OCRv6_rec_small.onnx"
    kind, _, place = spec.partition(":")
    if kind != "ppocr" or not place:
        raise MomentseekError(
            f"there is no reader {spec!r}; give {DEFAULT_READER}, or ppocr:FOLDER (with det.onnx and rec.onnx)"
        )
    found = Path(place).expanduser() / "det.onnx", Path(place).expanduser() / "rec.onnx"
    for file in found:
        if not file.is_file():
            raise MomentseekError(f"{file} is missing; download the whole model again")
    return found
