"""OCR models by name, PP-OCR with rapidocr, and OCR of a whole file in a separate process.

A model is ``ppocr-small`` (its weights come with the extra ``ocr``) or ``ppocr:FOLDER``, a folder with another PP-OCR
model as ``det.onnx`` and ``rec.onnx``, for instance for another script. Its fingerprint is stored with the text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from momentseek.core.errors import MomentseekError, missing_package, optional_module
from momentseek.core.workers import JobProcess, JobWords
from momentseek.media.container import FilePath
from momentseek.media.pixels import Pixels
from momentseek.media.sandbox.calls import sparse_frames
from momentseek.recognition.ocr.lines import (
    SLOT_SECONDS,
    Box,
    OcrFrame,
    OcrLine,
    OcrPart,
    brightness_blocks,
    frame_of_json,
    frame_slots,
    is_still,
)
from momentseek.recognition.weights.files import (
    are_installed,
    hashes,
    locate,
    model_in_environment,
    packaged_weights,
    verify,
)

DEFAULT_OCR_MODEL = "ppocr-small"
OCR_EXTRA = "ocr"
OCR_VARIABLE = "MOMENTSEEK_OCR"
"""Environment variable that turns OCR on (``on``) or off, or names another model."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights would read other lines."""

_WEIGHTS = packaged_weights(DEFAULT_OCR_MODEL)


class OcrModel(Protocol):
    """Reads the lines of text in a picture."""

    def read(self, pixels: Pixels) -> list[OcrLine]:
        """Return the lines of an RGB picture that pass the confidence limits."""
        ...


def is_installed() -> bool:
    """Whether the default OCR model's package and weights are installed."""
    return find_spec("rapidocr") is not None and are_installed(_WEIGHTS)


def default_ocr_model() -> str | None:
    """Return the default OCR model of ``add``: the environment's, else None."""
    chosen = model_in_environment(OCR_VARIABLE)
    return DEFAULT_OCR_MODEL if chosen is True else chosen or None


def ocr_fingerprint(spec: str, every: float = SLOT_SECONDS) -> str:
    """Return a hash that changes whenever a model would read other lines, at one frame per ``every`` seconds."""
    if spec == DEFAULT_OCR_MODEL:
        model_files(spec)
        parts = sorted(_WEIGHTS.files.values())
    else:
        parts = list(hashes(model_files(spec)).values())
    return hashlib.sha256("\n".join([RECIPE, f"{every:g}", *parts]).encode()).hexdigest()


def model_files(spec: str, *, check: bool = False) -> tuple[Path, Path]:
    """Return the files of the detector and the recogniser; with ``check``, the hashes of packaged ones are verified."""
    if find_spec("rapidocr") is None:
        raise missing_package("rapidocr", OCR_EXTRA)
    if spec == DEFAULT_OCR_MODEL:
        folder = verify(_WEIGHTS) if check else locate(_WEIGHTS)
        return folder / "PP-OCRv6_det_small.onnx", folder / "PP-OCRv6_rec_small.onnx"
    kind, _, place = spec.partition(":")
    if kind != "ppocr" or not place:
        raise MomentseekError(
            f"there is no OCR model {spec!r}; give {DEFAULT_OCR_MODEL}, or ppocr:FOLDER (with det.onnx and rec.onnx)"
        )
    found = Path(place).expanduser() / "det.onnx", Path(place).expanduser() / "rec.onnx"
    for file in found:
        if not file.is_file():
            raise MomentseekError(f"{file} is missing; download the whole model again")
    return found


DETECTOR_SIDE = 640
"""Longer side of the detector's input in pixels."""
MIN_SCORE = 0.8
"""Minimum score of a line."""
MIN_SHORT_SCORE = 0.95
"""Minimum score of a line of two letters; shorter lines are nearly always wrong."""
MAX_LINES = 200
"""Maximum number of lines per frame; the highest scores are kept."""
MAX_LETTERS = 500
"""Maximum length of a line; the rest is cut off."""


class PaddleOcr:
    """A PP-OCR model that reads lines of text in pictures."""

    def __init__(self, detector: Path, recogniser: Path, threads: int = 1) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        library = optional_module("rapidocr", OCR_EXTRA)
        optional_module("cv2", OCR_EXTRA).setNumThreads(threads)
        engine = "EngineConfig.onnxruntime"
        self._ocr: Any = library.RapidOCR(
            params={
                "Global.use_cls": False,
                "Global.log_level": "critical",
                "Global.text_score": MIN_SCORE,
                "Det.model_path": str(detector),
                "Det.limit_type": "max",
                "Det.limit_side_len": DETECTOR_SIDE,
                "Rec.model_path": str(recogniser),
                f"{engine}.intra_op_num_threads": threads,
                f"{engine}.inter_op_num_threads": 1,
            }
        )
        try:
            self.read(np.full((64, 256, 3), 255, np.uint8))  # loads both models
            self._ocr._load_rec_model()
        except Exception as e:
            reason = str(e).strip().splitlines()[-1:] or [type(e).__name__]
            raise MomentseekError(f"{detector.parent}: its models cannot be opened ({reason[0][:200]})") from None

    def read(self, pixels: Pixels) -> list[OcrLine]:
        """Return the lines of an RGB picture that pass the confidence limits."""
        found = self._ocr(np.ascontiguousarray(pixels[:, :, ::-1]))
        if found.txts is None or found.boxes is None:
            return []
        height, width = pixels.shape[:2]
        lines = [
            OcrLine(" ".join(text.split())[:MAX_LETTERS], _box(corners, width, height), round(float(score), 3))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
        ]
        sure = [line for line in lines if is_sure(line.text, line.score)]
        return sorted(sure, key=lambda line: -line.score)[:MAX_LINES]


def is_sure(text: str, score: float) -> bool:
    """Whether to keep a line: shapes that are no letters give very short lines or low scores.

    >>> is_sure("EXIT", 0.9), is_sure("EXIT", 0.7), is_sure("出口", 0.97), is_sure("V国", 0.84), is_sure("G", 0.99)
    (True, False, True, False, False)
    """
    letters = sum(c.isalnum() for c in text)
    return letters > 1 and score >= (MIN_SCORE if letters > 2 else MIN_SHORT_SCORE)


def _box(corners: Any, width: int, height: int) -> Box:
    xs, ys = np.asarray(corners, np.float64).T
    left, right = (float(np.clip(x / width, 0, 1)) for x in (xs.min(), xs.max()))
    top, bottom = (float(np.clip(y / height, 0, 1)) for y in (ys.min(), ys.max()))
    return Box(*(round(value, 4) for value in (left, top, right - left, bottom - top)))


PART_FRAMES = 16
"""Number of frames after which results are stored: about a minute of video."""


def read_file(
    reader: OcrModel,
    path: FilePath,
    duration: float,
    cuts: Sequence[float],
    begin: float = 0.0,
    every: float = SLOT_SECONDS,
) -> Iterator[OcrPart]:
    """Read a file part by part from ``begin`` on, where an earlier run may have stopped.

    The first frame of each part is always read, so that a resumed run gives the same result.
    """
    slots = frame_slots(duration, cuts, every)
    parts = [slots[at : at + PART_FRAMES] for at in range(0, len(slots), PART_FRAMES)]
    waiting = [part for part in parts if part[0][0] >= begin - 1e-6]
    pictures = sparse_frames(path, [slot for part in waiting for slot in part])
    try:
        for part in waiting:
            frames: list[OcrFrame] = []
            before = None
            for slot in part:
                frame = next(pictures, None)
                if frame is None:
                    break
                blocks = brightness_blocks(frame.pixels)
                still = is_still(blocks, before)
                lines = None if still else tuple(reader.read(frame.pixels))
                before = before if still else blocks
                frames.append(OcrFrame(*slot, frame.time, lines))
            yield OcrPart(part[-1][1], tuple(frames))
    finally:
        pictures.close()


TIMEOUT_SECONDS = 600.0
"""Timeout for an answer: a part of sixteen frames takes half a minute on a slow CPU."""


class OcrProcess(JobProcess):
    """An OCR model in a separate process, for one file at a time; close it, or use ``with``."""

    def __init__(self, spec: str, threads: int = 1, timeout: float = TIMEOUT_SECONDS) -> None:
        words = JobWords(f"the OCR model {spec}", "what its pictures show", "cannot be read")
        worker = "momentseek.recognition.ocr.worker"
        super().__init__(worker, [spec, str(threads)], words, threads=threads, timeout=timeout)

    def read(
        self, path: Path, duration: float, cuts: Sequence[float], begin: float = 0.0, every: float = SLOT_SECONDS
    ) -> Iterator[OcrPart]:
        """Read the text of a file part by part from ``begin`` on; raise MediaError if that fails."""
        for part in self.ask(os.fspath(path), duration=duration, cuts=list(cuts), begin=begin, every=every):
            yield OcrPart(part["done"], tuple(frame_of_json(values) for values in part["frames"]))
