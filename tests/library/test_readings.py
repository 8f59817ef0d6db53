"""What a reader reads becomes lines of its video, once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.library.database import OCR
from momentseek.library.report import AddInterrupted
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import TrackCounts, track, track_counts
from momentseek.library.tracks import ocr
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, OcrPart

RED, BLUE = (200, 20, 20), (20, 20, 200)
BOX = Box(0.1, 0.2, 0.5, 0.1)


def _frame(start: float, *texts: str) -> OcrFrame:
    return OcrFrame(start, start + 1, start + 0.5, tuple(OcrLine(text, BOX, 0.9) for text in texts))


class Lector:
    """A reader's process that reads the same two parts in every file, and what a test tells it to suffer."""

    suffers: ClassVar[dict[str, Exception]] = {}
    hangs = False
    jobs: ClassVar[list[tuple[str, float]]] = []

    def __init__(self, spec: str, threads: int = 1) -> None:
        self.closed = Event()

    def read(
        self, path: Path, duration: float, cuts: Sequence[float], begin: float = 0.0, every: float = 4.0
    ) -> Iterator[OcrPart]:
        self.jobs.append((path.name, begin))
        if begin < 2.0:
            yield OcrPart(2.0, (_frame(0.0, "Way out"), _frame(1.0, "Way out")))
        if self.hangs:
            self.closed.wait(60)
            raise MediaError("was closed")
        if error := self.suffers.get(path.name):
            raise error
        yield OcrPart(3.0, (_frame(2.0, "Platform 9", "King's Cross"),))

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def lector(monkeypatch: pytest.MonkeyPatch) -> type[Lector]:
    monkeypatch.setattr(ocr, "OcrProcess", Lector)
    monkeypatch.setattr(ocr, "ocr_fingerprint", lambda spec, every: f"print of {spec} {every}")
    Lector.suffers, Lector.jobs, Lector.hangs = {}, [], False
    return Lector


@pytest.fixture
def films(tmp_path: Path, film: Callable[..., Path]) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    film(folder / "a.mp4", RED)
    film(folder / "b.mp4", BLUE)
    return folder


def lines(library: LibraryStore) -> dict[str, list[tuple[str, float, float]]]:
    found = {video.name: track(library.catalog, OCR, video.id) for video in library.videos()}
    return {name: [(o.text, o.start, o.end) for o in read.cues] if read else [] for name, read in found.items()}


READ = [("Way out", 0.0, 2.0), ("Platform 9", 2.0, 3.0), ("King's Cross", 2.0, 3.0)]


def _sorted(found: dict[str, list[tuple[str, float, float]]]) -> dict[str, list[tuple[str, float, float]]]:
    return {name: sorted(some, key=READ.index) for name, some in found.items()}


def test_ocr_runs_once_and_only_on_request(library: LibraryStore, films: Path) -> None:
    assert library.add(films).read == 0
    assert library.status().unread == 2
    library.options = replace(library.options, ocr_model="ppocr-small")
    report = library.add(films)
    assert (report.unchanged, report.read, str(report)) == (2, 2, "2 videos unchanged; 2 videos read by OCR (00:00:06)")
    assert _sorted(lines(library)) == {"a.mp4": READ, "b.mp4": READ}
    found = track(library.catalog, OCR, library.videos()[0].id)
    assert found is not None
    assert (found.by.model, found.cues[0].box, found.cues[0].at) == ("ppocr-small", BOX, 0.5)
    assert library.verify().problems == []
    assert library.add(films).read == 0
    assert track_counts(library.catalog, OCR) == TrackCounts(done=2, seconds=6.0, found=6, undone=0, failed=0)
    assert [o.text for o in library.catalog.cues_between(library.videos()[0].id, 0.0, 1.0, OCR)] == ["Way out"]


def test_read_frames_are_not_read_again_after_an_interrupt(
    library: LibraryStore, films: Path, lector: type[Lector], monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    step = ocr.OcrPass.step

    def interrupt(self: Any) -> Any:
        found = step(self)
        if found.fresh:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(ocr.OcrPass, "step", interrupt)
    lector.hangs = True
    with pytest.raises(AddInterrupted):
        library.ocr(["a*"])
    monkeypatch.setattr(ocr.OcrPass, "step", step)
    assert lines(library)["a.mp4"] == []  # nothing is searched before it is whole
    lector.hangs = False
    assert library.ocr(["a*"]).read == 1
    assert lector.jobs == [("a.mp4", 0.0), ("a.mp4", 2.0)]
    assert _sorted(lines(library)) == {"a.mp4": READ, "b.mp4": []}
    assert library.ocr(["a*"], every=1.0).read == 0  # it is read
    assert library.ocr(["a*"], every=1.0, again=True).read == 1  # asked for by name, it is read anew
    assert _sorted(lines(library))["a.mp4"] == READ


def test_a_picture_that_cannot_be_read_costs_one_video(
    library: LibraryStore, films: Path, lector: type[Lector]
) -> None:
    lector.suffers = {"a.mp4": MediaError("the reader stops at it; convert it")}
    library.options = replace(library.options, ocr_model="ppocr-small")
    report = library.add(films)
    assert [noted.text for noted in report.noted] == [
        "its text on screen was not read: the reader stops at it; convert it"
    ]
    assert (library.status().unreadable, library.status().read) == (1, 1)
    assert library.ocr().read == 0  # not tried again unasked
    lector.suffers = {}
    assert library.ocr(again=True).read == 1


def test_a_broken_reader_costs_no_pictures(library: LibraryStore, films: Path, lector: type[Lector]) -> None:
    lector.suffers = dict.fromkeys(("a.mp4", "b.mp4"), MomentseekError("the reader cannot be started"))
    library.options = replace(library.options, ocr_model="ppocr-small")
    report = library.add(films)
    assert report.added == 2
    assert report.notes[-1] == "text on screen was not read: the reader cannot be started"
    with pytest.raises(MomentseekError, match="cannot be started"):
        library.ocr()


def test_a_video_with_new_subtitles_and_a_copy_keep_what_was_read(library: LibraryStore, films: Path) -> None:
    library.options = replace(library.options, ocr_model="ppocr-small")
    library.add(films)
    library.options = replace(library.options, ocr_model=None)
    (films / "a.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\nhello\n")
    (films / "c.mp4").write_bytes((films / "b.mp4").read_bytes())
    report = library.add(films)
    assert (report.refreshed, report.copied) == (1, 1)
    assert _sorted(lines(library)) == {"a.mp4": READ, "b.mp4": READ, "c.mp4": READ}
    assert library.verify().problems == []


def test_what_was_read_goes_with_its_video(library: LibraryStore, films: Path) -> None:
    library.options = replace(library.options, ocr_model="ppocr-small")
    library.add(films)
    library.remove(["a*"])
    library.compact()
    assert track_counts(library.catalog, OCR).found == 3
    assert library.catalog.near_spellings("platfrom", OCR) == ["platform"]
    library.remove(["b*"])
    library.compact()
    assert library.catalog.near_spellings("platfrom", OCR) == []
    assert library.verify().problems == []


def test_damaged_ocr_index_is_found_and_rebuilt(library: LibraryStore, films: Path) -> None:
    library.options = replace(library.options, ocr_model="ppocr-small")
    library.add(films)
    with closing(sqlite3.connect(library.path / "catalog.sqlite")) as other, other:
        other.execute("INSERT INTO ocr_words (ocr_words) VALUES ('delete-all')")
    other.close()
    assert any("ocr_words" in problem for problem in library.verify().problems)
    assert library.verify(repair=True).problems == []
    assert library.catalog.near_spellings("platfrom", OCR) == ["platform"]
