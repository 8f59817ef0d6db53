"""Files are written completely or not at all, and disk errors are reported in one sentence."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.atomic import append_lines, make_folder, write_all, write_bytes
from momentseek.core.errors import MomentseekError


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_disk_errors_are_reported_and_leave_nothing(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(MomentseekError, match=r"a\.txt: cannot be written \(Input"):
            write_all({tmp_path / "a.txt": b"after", tmp_path / "b.txt": b"new"})
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.txt", b"before")]


def test_undeletable_temporary_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        write_bytes(tmp_path / "a.txt", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.txt", b"new")]


def test_unflushable_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def flush(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", flush)
    make_folder(tmp_path / "a" / "b")
    write_bytes(tmp_path / "a" / "b" / "c.txt", b"new")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == b"new"


def test_appending_ends_an_incomplete_line_first(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    append_lines(path, b"one\n")
    path.write_bytes(path.read_bytes() + b"tor")
    append_lines(path, b"two\n")
    assert path.read_bytes() == b"one\ntor\ntwo\n"
    with pytest.raises(MomentseekError, match="cannot be written"):
        append_lines(tmp_path / "missing" / "journal.jsonl", b"x\n")
