"""``ocr run`` and ``ocr show``, with a fake OCR model."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore
from momentseek.library.tracks import ocr
from momentseek.recognition.encoders import registry
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, OcrPart

BOX = Box(0.1, 0.2, 0.5, 0.1)


class Lector:
    def __init__(self, spec: str, threads: int = 1) -> None:
        self.spec = spec

    def read(self, path: Path, duration: float, cuts: Sequence[float], begin: float, every: float) -> Iterator[OcrPart]:
        if self.spec != "ppocr-small":
            raise MomentseekError(f"the reader {self.spec} cannot be started")
        line = OcrLine(f"{path.stem} opens at nine", BOX, 0.97)
        yield OcrPart(duration, (OcrFrame(1.0, 3.0, 2.0, (line,)),))

    def close(self) -> None:
        pass


@pytest.fixture
def library(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(Path(__file__).parent.parent / "library" / "light.py"))["install"]()
    monkeypatch.setattr(ocr, "OcrProcess", Lector)
    monkeypatch.setattr(ocr, "ocr_fingerprint", lambda spec, every: spec)
    folder = tmp_path / "films"
    folder.mkdir()
    for name, colour in (("museum", (200, 20, 20)), ("zoo", (20, 20, 200))):
        make_video(folder / f"{name}.mp4", [(3.0, colour)], rate=5, size=(64, 48))
    with LibraryStore.open(tmp_path / "library", create=True, encoder="colours") as opened:
        opened.add(folder)
    return tmp_path / "library"


def test_reads_finds_and_shows_text(momentseek: Callable[..., Any], library: Path, tmp_path: Path) -> None:
    place = ("--library", library)
    unread = momentseek("ocr", "show", "zoo.mp4", *place)
    assert (unread.returncode, "OCR has not been run on it" in unread.stderr) == (2, True)
    done = momentseek("ocr", "run", *place)
    assert (done.returncode, done.stderr.splitlines()[-1].split(" in ")[0]) == (0, "2 videos read (00:00:06")
    assert "text      2 videos (00:00:06), 2 lines" in momentseek("status", *place).stdout
    assert (
        momentseek("ocr", "show", "zoo.mp4", *place).stdout == "1\n00:00:01,000 --> 00:00:03,000\nzoo opens at nine\n"
    )
    assert momentseek("ocr", "show", "zoo.mp4", "--format", "vtt", *place).stdout.startswith("WEBVTT")
    assert momentseek("ocr", "show", "zoo.mp4", "--format", "text", *place).stdout == "zoo opens at nine\n"
    out = tmp_path / "zoo.json"
    assert momentseek("ocr", "show", "zoo.mp4", "--format", "json", "--out", out, *place).returncode == 0
    line = {"start": 1.0, "end": 3.0, "text": "zoo opens at nine", "at": 2.0, "box": list(BOX), "score": 0.97}
    assert json.loads(out.read_text()) == {"read_by": "ppocr-small", "lines": [line]}
    hits = json.loads(momentseek("search", "text:musevm", "--json", *place).stdout)["hits"]
    assert [(hit["video"], hit["written"][0]["box"]) for hit in hits] == [("museum.mp4", list(BOX))]


def test_missing_model_is_one_sentence(momentseek: Callable[..., Any], library: Path) -> None:
    done = momentseek("ocr", "run", "--ocr-model", "ppocr:nowhere", "--library", library)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "momentseek: the reader ppocr:nowhere cannot be started",
    )
    done = momentseek("add", library.parent / "films", "--ocr", "--reader", "glasses", "--library", library)
    assert done.returncode == 2
    assert "there is no OCR model 'glasses'" in done.stderr


def test_former_names_do_the_same(momentseek: Callable[..., Any], library: Path) -> None:
    place = ("--library", library)
    assert momentseek("read", "--reader", "ppocr-small", *place).returncode == 0
    assert momentseek("text", "zoo.mp4", *place).stdout == momentseek("ocr", "show", "zoo.mp4", *place).stdout
