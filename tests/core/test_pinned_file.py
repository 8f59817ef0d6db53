from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from momentseek.core.pinned_file import FileChangedError, PinnedFile, open_folder

SECRET = b"the secret of the owner"


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """``here/films/one.mp4``, next to ``secret.txt`` and ``outside/one.mp4`` with the same secret."""
    film = tmp_path.resolve() / "here" / "films" / "one.mp4"
    film.parent.mkdir(parents=True)
    film.write_bytes(b"the film")
    (tmp_path / "outside").mkdir()
    for place in ("secret.txt", "outside/one.mp4"):
        (tmp_path / place).write_bytes(SECRET)
    return film


def _stamped(path: Path) -> PinnedFile:
    state = path.stat()
    return PinnedFile(path, state.st_size, state.st_mtime_ns)


def test_unchanged_file_is_opened(film: Path) -> None:
    file = _stamped(film)
    with file.open() as opened:
        assert (opened.read(), opened.name) == (b"the film", str(film))
    assert file.stat().st_size == 8
    assert (os.fspath(file), str(file), file.is_there()) == (str(film), str(film), True)


def test_rejects_links_in_the_path(film: Path, tmp_path: Path) -> None:
    file = PinnedFile(film)
    film.unlink()
    film.symlink_to(tmp_path / "secret.txt")
    for depth in range(2):
        if depth:
            film.unlink()
            film.parent.rmdir()
            film.parent.symlink_to(tmp_path / "outside", target_is_directory=True)
            assert film.read_bytes() == SECRET
        with pytest.raises(FileChangedError, match="links are not followed"):
            file.open()
        assert not file.is_there()
    with pytest.raises(FileChangedError), open_folder(film.parent):
        pass


@pytest.mark.parametrize("change", ["content", "time", "pipe", "folder"])
def test_rejects_changed_files(film: Path, change: str) -> None:
    file = _stamped(film)
    if change == "content":
        film.write_bytes(b"another film")
        os.utime(film, ns=(file.mtime_ns or 0, file.mtime_ns or 0))
    elif change == "time":
        os.utime(film, ns=(0, 0))
    else:
        film.unlink()
        os.mkfifo(film) if change == "pipe" else film.mkdir()
    with pytest.raises(FileChangedError, match=r"has changed since it was added|is not a regular file"):
        file.open()


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PinnedFile(tmp_path.resolve() / "x" / "one.mp4").open()
    assert not PinnedFile(Path("/no\0such")).is_there()


def test_no_file_stays_open(film: Path, tmp_path: Path) -> None:
    link = film.with_name("link.mp4")
    link.symlink_to(tmp_path / "secret.txt")
    before = len(os.listdir("/dev/fd"))
    for path in (film, link, film.parent / "absent", film / "x"):
        for _ in range(20):
            PinnedFile(path, size=8).is_there()
    assert len(os.listdir("/dev/fd")) == before


def test_flickering_link_is_never_followed(film: Path, tmp_path: Path) -> None:
    """The file and a parent folder alternate between link and original as fast as possible while they are opened."""
    stop = threading.Event()
    folder, kept = film.parent, film.parent.with_name("kept")
    trap = film.with_name("trap")

    def flicker() -> None:
        while not stop.is_set():
            trap.symlink_to(tmp_path / "secret.txt")
            film.rename(kept.with_suffix(".mp4"))
            trap.rename(film)
            film.unlink()
            kept.with_suffix(".mp4").rename(film)
            folder.rename(kept)
            folder.symlink_to(tmp_path / "outside", target_is_directory=True)
            folder.unlink()
            kept.rename(folder)

    thread = threading.Thread(target=flicker)
    thread.start()
    seen: set[bytes] = set()
    refused = 0
    try:
        for _ in range(3000):
            try:
                with PinnedFile(film).open() as file:
                    seen.add(file.read())
            except (OSError, FileChangedError):
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"the film"}
    assert refused
