"""Encoders that cost nothing, and the command line with them: ``python light.py ARGUMENT...``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SLOW = float(os.environ.get("LIGHT_SLOW", "0"))
"""Seconds that an image takes."""
PACE = float(os.environ.get("LIGHT_PACE", "0"))
"""Seconds after which what is finished is written; 0 for the usual."""


class Colours:
    """An image is its mean colour; a text that names a colour lies near it."""

    name, dim, short_side = "colours", 4, 32

    def __init__(self, version: str = "1") -> None:
        self.fingerprint = f"colours-{version}"
        self.last = 1.0 if version == "1" else 0.5

    def encode_images(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        time.sleep(SLOW * len(images))
        return self._unit([image.reshape(-1, 3).mean(axis=0) / 255 for image in images])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._unit([[float(word in text) for word in ("red", "green", "blue")] for text in texts])

    def _unit(self, rows: Sequence[object]) -> NDArray[np.float32]:
        wide = np.array([[*row, self.last] for row in rows], np.float32).reshape(-1, 4)  # type: ignore[misc]
        return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


class Shades:
    """A second encoder: an image is how bright it is, and which of red and blue it has more of.

    It sees eight levels of each colour, so that it makes the same of a picture before and after its compression.
    """

    name, dim, short_side, fingerprint = "shades", 3, 16, "shades-1"
    ready = True
    pictures = 0
    """Number of images encoded so far."""

    def encode_images(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        time.sleep(SLOW * len(images))
        type(self).pictures += len(images)
        mean = np.array([np.round(image.reshape(-1, 3).mean(axis=0) / 36) / 7 for image in images], np.float32)
        return self._unit(np.stack([mean.sum(axis=1), mean[:, 0] - mean[:, 2], np.ones(len(mean))], axis=1))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[1.0, float("red" in text) - float("blue" in text), 1.0] for text in texts]
        return self._unit(np.array(rows, np.float32).reshape(-1, 3))

    def _unit(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class Letters:
    """A text is how often it uses each letter."""

    name, dim, fingerprint = "minilm", 27, "letters-1"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[t.lower().count(chr(97 + i)) for i in range(26)] + [1] for t in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def words(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [self.encode(self.tokens(text)) for text in texts]

    def tokens(self, text: str) -> list[str]:
        return text.split() or ["."]


def install() -> None:
    """Register them under their names; speech is encoded by ``Letters``."""
    from momentseek.recognition.encoders import registry

    if PACE:
        from momentseek.library import store
        from momentseek.library.options import AddOptions, WritePace

        store.AddOptions = lambda: AddOptions(pace=WritePace(seconds=PACE))  # type: ignore[assignment,misc]
    registry.IMAGE_TEXT_ENCODERS["colours"] = Colours
    registry.IMAGE_TEXT_ENCODERS["shades"] = Shades
    registry.IMAGE_TEXT_ENCODERS["colours-2"] = lambda: Colours("2")
    registry.TEXT_ENCODERS["minilm"] = Letters


def main(arguments: Sequence[str]) -> None:
    """The command line, writing after every video and keeping long ones in parts of eight clips."""
    from momentseek.cli import main
    from momentseek.library import store
    from momentseek.library.options import AddOptions, WritePace
    from momentseek.library.tracks import second_pass

    install()
    second_pass.PART_PICTURES, second_pass.JOIN_SECONDS = 3, 0.05
    pace = WritePace(rows=40, seconds=0.05, part_clips=8)
    store.AddOptions = lambda: AddOptions(pace=pace)  # type: ignore[assignment,misc]
    sys.argv = ["momentseek", *arguments]
    main()


if __name__ == "__main__":
    main(sys.argv[1:])
