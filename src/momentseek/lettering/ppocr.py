"""PP-OCR by rapidocr: a detector finds where lines stand, a recogniser reads them from the full frame.

The detector looks at the frame with its longer side at 640 pixels: larger costs two to four times as much and finds no
more. rapidocr fetches models by itself where it is given none, so it is always given files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.lettering.line import Box, ReadLine
from momentseek.lettering.reader import OCR_EXTRA
from momentseek.media.picture import Pixels
from momentseek.optional import optional_module

DETECTOR_SIDE = 640
"""Pixels of the longer side at which the detector looks."""
MIN_SCORE = 0.8
"""How sure the recogniser must be of a line."""
MIN_SHORT_SCORE = 0.95
"""How sure of a line of two letters; what is shorter is nearly always something else."""
MAX_LINES = 200
"""Lines of one frame that are kept, surest first."""
MAX_LETTERS = 500
"""Letters of a line that are kept."""


class PaddleReader:
    """A PP-OCR model that reads lines in pictures."""

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

    def read(self, pixels: Pixels) -> list[ReadLine]:
        """The lines of an RGB picture that are surely there."""
        found = self._ocr(np.ascontiguousarray(pixels[:, :, ::-1]))
        if found.txts is None or found.boxes is None:
            return []
        height, width = pixels.shape[:2]
        lines = [
            ReadLine(" ".join(text.split())[:MAX_LETTERS], _box(corners, width, height), round(float(score), 3))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
        ]
        sure = [line for line in lines if is_sure(line.text, line.score)]
        return sorted(sure, key=lambda line: -line.score)[:MAX_LINES]


def is_sure(text: str, score: float) -> bool:
    """Whether a line is kept: shapes that are no letters are read as one or two, or unsurely.

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
