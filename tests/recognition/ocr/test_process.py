"""A real OCR model in a separate process reads a film of slides; problems with its files are one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.recognition.ocr.lines import Box, merge_lines
from momentseek.recognition.ocr.models import OcrProcess, ocr_fingerprint

pytest.importorskip("rapidocr")


def _slide(*lines: str, turned: bool = False) -> np.ndarray:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 360), (24, 40, 90))
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        draw.text((60, 60 + 90 * row), line, fill=(250, 250, 240), font=ImageFont.load_default(36))
    return np.asarray(picture.rotate(180) if turned else picture)


def test_reads_slides_with_times_and_boxes(tmp_path: Path, make_video: Callable[..., Path]) -> None:
    scenes = [
        (5.0, _slide("Seven telescopes", "in the desert")),
        (3.0, _slide("Questions?")),
        (2.0, _slide("Backwards", turned=True)),
    ]
    film = make_video(tmp_path / "talk.mp4", scenes, rate=5, size=(640, 360))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(bytes(200))
    with OcrProcess("ppocr-small") as process:
        with pytest.raises(MediaError, match=r"broken\.mp4: "):
            list(process.read(broken, 10.0, []))
        parts = list(process.read(film, 10.0, [5.0, 8.0]))
    lines = merge_lines(frame for part in parts for frame in part.frames)
    assert [(line.text, line.start, line.end) for line in lines if line.start < 8] == [
        ("Seven telescopes", 0.0, 5.0),
        ("in the desert", 0.0, 5.0),
        ("Questions?", 5.0, 8.0),
    ]
    assert "Backwards" not in [line.text for line in lines]
    assert lines[0].box.overlap(Box(60 / 640, 62 / 360, 300 / 640, 40 / 360)) > 0.5
    assert [frame.lines is None for frame in parts[0].frames] == [False, True, False, False]  # the slide stands still


def test_rejects_unknown_model(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no OCR model 'glasses'"):
        ocr_fingerprint("glasses")
    with pytest.raises(MomentseekError, match=r"det\.onnx is missing"):
        ocr_fingerprint(f"ppocr:{tmp_path}")


def test_rejects_damaged_model(tmp_path: Path) -> None:
    for name in ("det.onnx", "rec.onnx"):
        (tmp_path / name).write_bytes(b"no model")
    with (
        OcrProcess(f"ppocr:{tmp_path}") as process,
        pytest.raises(MomentseekError, match="its models cannot be opened") as caught,
    ):
        list(process.read(tmp_path / "film.mp4", 1.0, []))
    assert "\n" not in str(caught.value)
