"""Several files are read at once, and the library is what it would be if they had been read one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from momentseek.library.ingest import decoding as reading
from momentseek.library.ingest import run
from momentseek.library.report import AddInterrupted
from momentseek.library.store import LibraryStore

Film = Callable[..., Path]
Content = Callable[[LibraryStore], dict[str, Any]]
RED = (220, 20, 20)


@pytest.fixture
def many(tmp_path: Path, film: Film) -> Path:
    """A folder with five videos and, between them, what is none."""
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(5):
        film(folder / f"{i}.mp4", RED, (40 * i, 200, 0), seconds=1 + i % 2)
    (folder / "1-none.mp4").write_bytes(b"none")
    (folder / "3-none.mp4").write_bytes(b"none")
    return folder


class Turns:
    """Keeps the frames of the first file back until so many others have been read to their end."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, others: int, error: BaseException | None = None, pause: float = 0.0
    ) -> None:
        self.pause = pause
        """Seconds for which it is kept back even then."""
        self.begun_meanwhile = 0
        self.ended = threading.Semaphore(0)
        self.begun: list[str] = []
        self.others, self.error, self.plain = others, error, reading.decode_video
        monkeypatch.setattr(reading, "decode_video", self.decode)

    def decode(self, job: Any, *rest: Any) -> Iterator[Any]:
        self.begun.append(job.file.path.name)
        if job.file.path.name == "0.mp4":
            for _ in range(self.others):
                assert self.ended.acquire(timeout=60)
            time.sleep(self.pause)
            self.begun_meanwhile = len(self.begun)
            if self.error is not None:
                raise self.error
        yield from self.plain(job, *rest)
        self.ended.release()


@pytest.mark.parametrize("others", [1, 4])
def test_the_order_of_the_files_stays_whichever_is_read_first(
    others: int, light: ModuleType, tmp_path: Path, many: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    def added(name: str, jobs: int) -> tuple[list[str], dict[str, Any], list[str], str]:
        with LibraryStore.open(tmp_path / name, create=True, encoder="colours", clip_seconds=0.5) as library:
            library.options = replace(library.options, jobs=jobs)
            report = library.add(many)
            assert library.verify().clean
            videos = [video.name for video in sorted(library.videos(), key=lambda video: video.id)]
            failed = [failure.path.name for failure in report.failed]
            again = library.add(many)
            return videos, content(library), failed, f"{report.added} {again.unchanged} {again.failed_before}"

    alone = added("alone", 1)
    assert alone[0] == [f"{i}.mp4" for i in range(5)]
    assert alone[2] == ["1-none.mp4", "3-none.mp4"]
    turns = Turns(monkeypatch, others)
    assert added("together", 3) == alone
    assert sorted(turns.begun) == alone[0]


def test_no_more_is_begun_while_too_much_waits_for_an_earlier_file(
    library: LibraryStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_CLIPS_AHEAD", 0)
    monkeypatch.setattr("momentseek.library.ingest.batches.FRAMES_PER_BATCH", 2)
    turns = Turns(monkeypatch, 1, pause=0.5)
    library.options = replace(library.options, jobs=2)
    assert library.add(many).added == 5
    assert turns.begun_meanwhile <= 3  # another may have begun before the first that is whole was handed over
    assert library.verify().clean


def test_complete_files_are_kept_when_an_earlier_file_is_interrupted(
    library: LibraryStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Turns(monkeypatch, 4, KeyboardInterrupt())
    monkeypatch.setattr("momentseek.library.ingest.batches.FRAMES_PER_BATCH", 1)
    library.options = replace(library.options, jobs=2)
    with pytest.raises(AddInterrupted) as stopped:
        library.add(many)
    names = [video.name for video in library.videos()]
    assert stopped.value.report.added == len(names) >= 3  # the last may not have been encoded yet
    assert "0.mp4" not in names
    assert library.verify().clean
    monkeypatch.undo()
    assert library.add(many).in_library == 5
