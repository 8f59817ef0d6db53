"""Encoders that look at several frames of a clip, and one that was downloaded, through adding and searching."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.recognition.encoders.graphs import siglip2_files
from tests.recognition.weights.server import served

import momentseek as ms
from momentseek.core.errors import MomentseekError
from momentseek.library.ingest import writer
from momentseek.library.options import WritePace
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.media.decode import frames
from momentseek.recognition.downloads import fetch_model
from momentseek.recognition.encoders import registry
from momentseek.recognition.encoders.protocol import Pixels, Vectors, WindowEncoder
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.encoders.window_mean import WindowMean
from momentseek.recognition.weights import catalog
from momentseek.recognition.weights.catalog import HubFile, HubModel

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
Film = Callable[..., Path]
Open = Callable[[str], LibraryStore]


class Changes:
    """Knows whether a clip changes from its first frame to its last, which no single frame tells."""

    name, dim, short_side, fingerprint, window_frames = "changes", 2, 16, "changes-1", 4

    def __init__(self) -> None:
        self.seen: list[int] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1, 0] if "change" in text else [0, 1] for text in texts], np.float32)

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        return self.encode_windows([[image] for image in images])

    def encode_windows(self, windows: Sequence[Sequence[Pixels]]) -> Vectors:
        self.seen += [len(window) for window in windows]
        far = [np.abs(window[0].astype(float) - window[-1]).mean() > 20 for window in windows]
        return np.array([[1, 0] if changes else [0, 1] for changes in far], np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()


@pytest.fixture
def changes(light: ModuleType) -> Changes:
    """The encoder of changes, registered for one test."""
    encoder = Changes()
    registry.IMAGE_TEXT_ENCODERS["changes"] = lambda: encoder
    return encoder


@pytest.fixture
def open_library(light: ModuleType, tmp_path: Path) -> Iterator[Open]:
    opened: list[LibraryStore] = []

    def make(encoder: str) -> LibraryStore:
        opened.append(LibraryStore.open(tmp_path / f"library-{len(opened)}", create=True, encoder=encoder))
        return opened[-1]

    yield make
    for library in opened:
        library.close()


def rows_of(library: LibraryStore) -> list[Vectors]:
    state = library.snapshot()
    found = [StoredVectors.find(state.vision, video.id) for video in library.videos()]
    return [rows.half for rows in found if rows is not None]


def test_the_mean_of_three_frames(open_library: Open, film: Film, tmp_path: Path, light: ModuleType) -> None:
    path = film(tmp_path / "films/a.mp4", RED, BLUE, seconds=2.0)
    library = open_library("mean:colours")
    assert library.add(path.parent).failed == []
    (rows,) = rows_of(library)
    wide = light.Colours().encode_images([frame.pixels for frame in frames(path, 2.0, short_side=32)])
    want = np.stack([wide[at : at + 3].mean(axis=0) for at in range(0, len(wide), 3)])
    np.testing.assert_allclose(rows, want / np.linalg.norm(want, axis=1, keepdims=True), atol=1e-3)
    assert 0.1 < rows[1, 0] < rows[0, 0]  # the clip with the cut has something of both
    assert 0.1 < rows[1, 2] < rows[2, 2]


def test_there_are_as_many_clips_however_many_frames_each_has(
    open_library: Open, film: Film, tmp_path: Path, changes: Changes
) -> None:
    for at, seconds in enumerate((0.4, 1.6, 3.0, 3.2, 7.0)):
        film(tmp_path / f"films/{at}.mp4", GREEN, seconds=seconds)
    one, four = open_library("colours"), open_library("changes")
    four.options = replace(four.options, jobs=1)  # so that the encoder sees the films in order
    for library in (one, four):
        assert library.add(tmp_path / "films").failed == []
    assert [video.clips for video in four.videos()] == [video.clips for video in one.videos()] == [1, 2, 2, 3, 5]
    assert [len(rows) for rows in rows_of(four)] == [1, 2, 2, 3, 5]
    assert len(changes.seen) == 13
    assert changes.seen[:3] == [2, 4, 1]  # 0.4 s, and 1.6 s
    assert max(changes.seen) == 4


def test_what_no_single_frame_tells_is_found(film: Film, tmp_path: Path, changes: Changes) -> None:
    film(tmp_path / "films/still.mp4", RED, seconds=9.0)
    film(tmp_path / "films/moving.mp4", RED, GREEN, seconds=5.0)
    with ms.Library.open(tmp_path / "library", create=True, encoder="changes") as library:
        library.add(tmp_path / "films")
        hit = library.search("a change", k=1, all=True)[0]
    assert hit.name == "moving.mp4"
    assert hit.start <= 5.0 <= hit.end


def test_parts_of_a_long_video_fit_together(
    open_library: Open, film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film(tmp_path / "films/a.mp4", *(RED, BLUE, GREEN) * 4, seconds=2.0)
    whole = open_library("mean:colours")
    whole.add(tmp_path / "films")
    monkeypatch.setattr(writer, "WritePace", lambda: WritePace(rows=40, seconds=0.05, part_clips=3))
    parts = open_library("mean:colours")
    parts.add(tmp_path / "films")
    np.testing.assert_array_equal(rows_of(parts)[0], rows_of(whole)[0])


def test_a_library_moves_to_an_encoder_of_windows(open_library: Open, film: Film, tmp_path: Path) -> None:
    film(tmp_path / "films/a.mp4", RED, BLUE, seconds=2.0)
    library, other = open_library("colours"), open_library("mean:colours")
    for each in (library, other):
        each.add(tmp_path / "films")
    library.reencode("mean:colours")
    np.testing.assert_array_equal(rows_of(library)[0], rows_of(other)[0])


def test_the_mean_offers_what_its_encoder_does(light: ModuleType) -> None:
    class Knowing(light.Colours):  # type: ignore[misc,name-defined]
        def knows(self, text: str) -> bool:
            return text == "red"

        def pool(self, rows: Vectors) -> Vectors:
            return np.asarray(rows[0])

    mean = WindowMean(Knowing(), 2)
    assert isinstance(mean, WindowEncoder)
    assert (mean.name, mean.knows("red"), mean.knows("blue")) == ("mean:colours", True, False)
    assert not hasattr(mean, "evidence")
    pictures = [np.full((4, 4, 3), colour, np.uint8) for colour in (RED, GREEN, BLUE)]
    rows = mean.encode_windows([pictures[:2], pictures[2:]])
    np.testing.assert_array_equal(rows, mean.encode_images([pictures[0], pictures[2]]))
    assert mean.encode_windows([]).shape == (0, 4)
    assert len({WindowMean(Knowing(), count).fingerprint for count in (1, 2, 3)}) == 3
    with pytest.raises(MomentseekError, match="a window of 0 frames: give at least 1"):
        WindowMean(Knowing(), 0)
    with pytest.raises(MomentseekError, match="there is no image-text encoder 'colors'; did you mean 'colours"):
        image_text_encoder("mean:colors")


def test_a_downloaded_model_adds_and_finds(film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    data = siglip2_files()
    sizes = {name: HubFile(len(each), hashlib.sha256(each).hexdigest()) for name, each in data.items()}
    model = HubModel("tiny", "somebody/tiny", "abc", sizes, 6, "MIT", "tests")
    monkeypatch.setitem(catalog.HUB_MODELS, "tiny", model)
    with served(data) as server:
        fetch_model(model, server.url)
    film(tmp_path / "films/a.mp4", GREEN, BLUE, RED, seconds=6.0)
    with ms.Library.open(tmp_path / "library", create=True, encoder="hub:tiny") as library:
        library.add(tmp_path / "films")
        hit = library.search("a BLUE picture", k=1, all=True)[0]
    assert (round(hit.start), round(hit.end)) == (6, 12)
