from __future__ import annotations

import os

from momentseek.search import pictures
from momentseek.search.pictures import Pictures


def test_the_oldest_make_room(tmp_path):
    kept = Pictures(tmp_path / "thumbnails", most=1000)
    for i in range(10):
        kept.keep(f"{i}.webp", b"x" * 100)
        os.utime(tmp_path / "thumbnails" / f"{i}.webp", ns=(i, i))
    assert kept.get("0.webp") == b"x" * 100
    kept.keep("new.webp", b"y" * 100)
    assert kept.get("0.webp") is None
    assert kept.get("1.webp") is None
    assert kept.get("9.webp") is not None
    assert kept.get("new.webp") == b"y" * 100
    assert sum(path.stat().st_size for path in (tmp_path / "thumbnails").iterdir()) <= 900


def test_what_others_keep_counts_too(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "LOOK_EVERY", 3)
    mine, others = Pictures(tmp_path, most=1000), Pictures(tmp_path, most=10**9)
    mine.keep("mine.webp", b"x" * 10)
    for i in range(20):
        others.keep(f"{i}.webp", b"x" * 100)
    for i in range(4):
        mine.keep(f"mine{i}.webp", b"x" * 10)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    (tmp_path / "file").touch()
    kept = Pictures(tmp_path / "file" / "thumbnails", most=10)
    kept.keep("a.webp", b"x" * 100)
    assert kept.get("a.webp") is None
