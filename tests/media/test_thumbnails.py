from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from momentseek.core.errors import MediaError
from momentseek.media.decode import thumbnail, webp

Maker = Callable[..., Path]


def pixels(data: bytes) -> Any:
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "WEBP"
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(("time", "shown"), [(0.0, 0), (1.0, 25), (1.03, 25), (2.5, 62), (-3.0, 0), (500.0, 99)])
def test_thumbnail_is_the_frame_shown(counting: Maker, number: Callable[[Any], int], time: float, shown: int) -> None:
    for settings in ({}, {"start": 7.0}):
        path = counting(f"{len(settings)}.mkv", options={"g": "30"}, **settings)
        assert number(pixels(thumbnail(path, time))) == shown


def test_thumbnail_width_and_rotation(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", [(0.4, (9, 9, 200))], size=(96, 160), rotation=90)
    assert pixels(thumbnail(path, 0.1, width=48)).shape == (80, 48, 3)
    assert pixels(thumbnail(path, 0.1, width=1000)).shape == (160, 96, 3)


def test_colours_and_quality() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (33, 61, 3), np.uint8)
    good, poor = webp(noise, 95), webp(noise, 10)
    assert len(poor) < len(good)
    flat = np.full((20, 31, 3), (200, 40, 90), np.uint8)
    np.testing.assert_allclose(pixels(webp(flat)).reshape(-1, 3).mean(0), (200, 40, 90), atol=4)


def test_one_pixel_video(make_video: Maker, tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mkv", [(1.0, (200, 9, 9))], codec="ffv1", size=(1, 1))
    assert pixels(thumbnail(path, 0.5)).shape == (1, 1, 3)


def test_rejects_non_video(tmp_path: Path) -> None:
    with pytest.raises(MediaError):
        thumbnail(tmp_path, 1.0)
