"""A store that speaks S3, machines with a cache of their own, and a small library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import S3Server, serve_s3
from small_library import fill, nothing

from momentseek.media.subtitles.cues import Cue


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    """A server with the bucket ``films``; replicas lie in a folder of the test's own."""
    pytest.importorskip("obstore")
    monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "cache"))
    with serve_s3(monkeypatch, "films") as server:
        yield server


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A library of six films in a folder, one of them with a cue."""
    films = {f"film{i}.mp4": nothing(3 + i, i) for i in range(6)}
    fill(tmp_path / "one", films, {"film3.mp4": [Cue(0.0, 1.0, "hello")]}).close()
    return tmp_path / "one"
