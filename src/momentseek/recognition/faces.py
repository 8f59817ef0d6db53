"""Detect faces in pictures: how many and how large, never whose. BlazeFace (MediaPipe, Apache-2.0), run by LiteRT.

Its weights are one file that ``momentseek models get blazeface`` downloads. Its input is a square of 192 pixels, so a
wide picture is processed as a whole and in adjacent squares, which finds faces down to a twentieth of the height.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, missing_package, optional_module
from momentseek.core.registry import Registry
from momentseek.recognition.encoders.protocol import Pixels
from momentseek.recognition.weights.files import packaged_weights, verify

BLAZEFACE = "blazeface"
PEOPLE_EXTRA = "people"
WEIGHTS_FILE = "face_detection_full_range_sparse.tflite"
SIDE = 192
"""Side of the model's square input in pixels."""
CELLS = 48
MIN_SCORE = 0.6
MAX_OVERLAP = 0.3
"""Two boxes with at least this overlap are one face."""
CLOSE_UP_HEIGHT = 0.33
"""A face at least this high, as a share of the picture's height, is a close-up."""
CROWD = 6
"""Smallest number of faces that is a crowd."""
NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class Face:
    """The box of a face, as fractions of the picture's width and height, and its score."""

    left: float
    top: float
    width: float
    height: float
    score: float


class FaceDetector(Protocol):
    """Finds faces in a picture."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything its results depend on; videos are processed again when it changes."""
        ...

    def detect(self, picture: Pixels) -> list[Face]:
        """Return the faces in a picture, the highest score first."""
        ...


class BlazeFace:
    """MediaPipe's detector for faces up to five metres away."""

    def __init__(self, file: Path | None = None, threads: int = 1) -> None:
        asset = packaged_weights(BLAZEFACE)
        if find_spec("ai_edge_litert") is None:
            raise missing_package("ai-edge-litert", PEOPLE_EXTRA)
        file = file or verify(asset) / WEIGHTS_FILE
        self.fingerprint = f"1:{asset.files[WEIGHTS_FILE]}"
        interpreter = optional_module("ai_edge_litert.interpreter", PEOPLE_EXTRA).Interpreter
        try:
            self._model: Any = interpreter(str(file), num_threads=threads)
            self._model.allocate_tensors()
        except (ValueError, RuntimeError) as e:
            raise MomentseekError(f"{file}: cannot be opened ({str(e).splitlines()[0][:200]})") from None
        self._input = self._model.get_input_details()[0]["index"]
        found = sorted(self._model.get_output_details(), key=lambda about: -int(about["shape"][-1]))
        self._boxes, self._scores = (about["index"] for about in found)
        across, down = np.meshgrid(np.arange(CELLS), np.arange(CELLS))
        self._centres = (np.stack([across, down], -1).reshape(-1, 2) + 0.5) / CELLS

    def detect(self, picture: Pixels) -> list[Face]:
        """Return the faces in a picture, the highest score first."""
        height, width = picture.shape[:2]
        found = self._in_part(picture, 0, 0, width, height)
        side, long = sorted((width, height))
        if long > 1.2 * side:
            for first in np.linspace(0, long - side, min(8, math.ceil(long / side) + 1)).round().astype(int).tolist():
                left, top = (first, 0) if width > height else (0, first)
                found += self._in_part(picture, left, top, side, side)
        kept: list[Face] = []
        for face in sorted(found, key=lambda face: -face.score):
            if all(_overlap(face, other) < MAX_OVERLAP for other in kept):
                kept.append(face)
        return kept

    def _in_part(self, picture: Pixels, left: int, top: int, width: int, height: int) -> list[Face]:
        """Return the faces in a part of a picture, as fractions of the whole picture."""
        part = picture[top : top + height, left : left + width]
        longest = max(width, height)
        at = (np.arange(SIDE) + 0.5) * longest / SIDE
        rows, columns = at - (longest - height) / 2, at - (longest - width) / 2
        inside = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))
        nearest = part[rows.clip(0, height - 1).astype(int)][:, columns.clip(0, width - 1).astype(int)]
        square = np.where(inside[..., None], nearest, 0).astype(np.float32) / 127.5 - 1
        self._model.set_tensor(self._input, square[None])
        self._model.invoke()
        boxes: NDArray[np.float32] = self._model.get_tensor(self._boxes)[0]
        scores = 1 / (1 + np.exp(-self._model.get_tensor(self._scores)[0, :, 0].clip(-80, 80)))
        faces = []
        for cell in np.flatnonzero(scores >= MIN_SCORE).tolist():
            x, y = self._centres[cell] + boxes[cell, :2] / SIDE
            w, h = boxes[cell, 2:4] / SIDE
            x0 = (x - w / 2) * longest - (longest - width) / 2 + left
            y0 = (y - h / 2) * longest - (longest - height) / 2 + top
            whole = picture.shape[1], picture.shape[0]
            left_top, size = (x0 / whole[0], y0 / whole[1]), (w * longest / whole[0], h * longest / whole[1])
            faces.append(Face(*(float(share) for share in (*left_top, *size, scores[cell]))))
        return faces


def _overlap(one: Face, other: Face) -> float:
    """Return the intersection of two boxes divided by the smaller one, since squares cut faces at their edges."""
    across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
    down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
    shared = max(0.0, across) * max(0.0, down)
    return shared / max(1e-9, min(one.width * one.height, other.width * other.height))


def describe_faces(faces: int, tallest: float) -> str:
    """Describe faces in words that people search for; an empty text for no faces.

    >>> describe_faces(1, 0.5), describe_faces(2, 0.1), describe_faces(9, 0.1), describe_faces(0, 0.0)
    ('one person, a close-up', 'two people', 'a crowd of people', '')
    """
    if not faces:
        return ""
    many = "a crowd of people" if faces >= CROWD else "one person" if faces == 1 else f"{NUMBERS[faces]} people"
    return f"{many}, a close-up" if tallest >= CLOSE_UP_HEIGHT else many


FACE_DETECTORS: Registry[Callable[[], FaceDetector]] = Registry("face detector")
"""Loaders of face detectors by name; add your own with ``FACE_DETECTORS.add(name, load)``."""
FACE_DETECTORS.add(BLAZEFACE, BlazeFace)


def heights(faces: Sequence[Face]) -> tuple[int, float]:
    """Return the number of faces and the height of the tallest."""
    return len(faces), max((face.height for face in faces), default=0.0)
