"""Videos whose every frame says its own number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

STRIPES = 10


def counted(seconds: float) -> Any:
    """A picture that spells the frame's number, at 25 a second, in ten stripes: white for 1, black for 0."""
    k = round(seconds * 25)
    bits = [(k >> j) & 1 for j in range(STRIPES)]
    return np.repeat(np.array(bits, np.uint8) * 255, 16)[None, :, None].repeat(120, 0).repeat(3, 2)


@pytest.fixture
def counting(make_video: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """A video of 4 seconds, 25 frames a second, in which every frame spells its number; ``number`` reads it back."""

    def make(name: str = "counting.mp4", seconds: float = 4.0, **settings: Any) -> Path:
        options = {"crf": "15"} if settings.get("codec", "libx264") == "libx264" else {}
        settings["options"] = options | settings.get("options", {})
        return make_video(tmp_path / name, [(seconds, counted)], **settings)

    return make


@pytest.fixture
def number() -> Callable[[Any], int]:
    """Which frame of ``counting`` some pixels are."""

    def read(pixels: Any) -> int:
        stripes = np.array_split(pixels, STRIPES, axis=1)
        return sum(int(np.median(stripe) > 127) << j for j, stripe in enumerate(stripes))

    return read
