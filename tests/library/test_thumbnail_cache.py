from __future__ import annotations

import os

from momentseek.library import paths as thumbnail_cache
from momentseek.library.paths import ThumbnailCache


def test_the_oldest_make_room(tmp_path):
    kept = ThumbnailCache(tmp_path / "thumbnails", max_bytes=1000)
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
    monkeypatch.setattr(thumbnail_cache, "THUMBNAILS_PER_SCAN", 3)
    mine, others = ThumbnailCache(tmp_path, max_bytes=1000), ThumbnailCache(tmp_path, max_bytes=10**9)
    mine.keep("mine.webp", b"x" * 10)
    for i in range(20):
        others.keep(f"{i}.webp", b"x" * 100)
    for i in range(4):
        mine.keep(f"mine{i}.webp", b"x" * 10)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    (tmp_path / "file").touch()
    kept = ThumbnailCache(tmp_path / "file" / "thumbnails", max_bytes=10)
    kept.keep("a.webp", b"x" * 100)
    assert kept.get("a.webp") is None
