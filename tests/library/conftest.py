"""Libraries with encoders that cost nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from processes import start_momentseek

from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore

LIGHT = Path(__file__).with_name("light.py")
RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("light_encoders", LIGHT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The light encoders, registered for one test."""
    from momentseek.recognition.encoders import registry

    module = _load()
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    module.install()
    return module


@pytest.fixture
def library(light: ModuleType, tmp_path: Path) -> Iterator[LibraryStore]:
    """An empty library."""
    with LibraryStore.open(tmp_path / "library", create=True, encoder="colours") as opened:
        yield opened


@pytest.fixture
def film(make_video: Callable[..., Path]) -> Callable[..., Path]:
    """A small video: ``film(path, RED, GREEN, seconds=3)`` shows each colour for so long."""

    def make(path: Path, *colours: tuple[int, int, int], seconds: float = 3.0, **more: Any) -> Path:
        scenes = [(seconds, _picture(colour)) for colour in colours or (RED,)]
        return make_video(path, scenes, rate=5, size=(64, 48), **more)

    return make


def _picture(colour: tuple[int, int, int]) -> np.ndarray:
    """Blocks in shades of a colour, other blocks for each: cuts between flat pictures are not taken for cuts."""
    shades = np.random.default_rng(colour).uniform(0.2, 1.0, (6, 8, 1))
    return (shades * colour).astype(np.uint8).repeat(8, axis=0).repeat(8, axis=1)


@pytest.fixture
def films(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """A folder with three videos, one of them with subtitles and one in a folder."""
    folder = tmp_path / "films"
    (folder / "deep").mkdir(parents=True)
    film(folder / "a.mp4", RED, GREEN)
    film(folder / "b.mp4", BLUE)
    (folder / "b.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nIt is blue.\n")
    film(folder / "deep" / "c.mkv", GREEN, BLUE, RED)
    return folder


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line with the light encoders, as a process of its own."""

    def run(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
        if more:
            words = [sys.executable, str(LIGHT), *map(str, arguments)]
            return subprocess.run(words, capture_output=True, text=True, check=False, **more)
        process = start_momentseek(*arguments, light=True)
        out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.wait(), out, err)

    return run


@pytest.fixture
def content() -> Callable[[LibraryStore], dict[str, Any]]:
    """All that a library says of each video, without ids and times of adding."""

    def of(library: LibraryStore) -> dict[str, Any]:
        state = library.snapshot()
        found = {}
        for video in library.videos():
            rows = [StoredVectors.find(segments, video.id) for segments in (state.vision, state.speech)]
            found[video.name] = (
                [None if r is None else (r.codes.tobytes(), r.scales.tobytes(), r.half.tobytes()) for r in rows],
                library.catalog.cues(video.id),
                video.shots, video.clips, video.duration, video.hash, video.path, video.notes,
            )  # fmt: skip
        return found

    return of
