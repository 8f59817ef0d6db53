"""The way a video was sampled stays with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from momentseek.api.library import open_store
from momentseek.cluster.shards.making import make_shards
from momentseek.library.ingest import decoding as reading
from momentseek.library.options import AddOptions
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore

Film = Callable[..., Path]
RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How videos were decoded, one after another."""
    seen: list[str] = []
    plain = reading.PartReader.__init__

    def note(self: Any, job: Any, *rest: Any) -> None:
        seen.append(job.sampling)
        plain(self, job, *rest)

    monkeypatch.setattr(reading.PartReader, "__init__", note)
    return seen


def sampled(library: LibraryStore) -> dict[str, str]:
    return {video.name: video.sampling for video in library.videos()}


def test_a_library_remembers_how_each_video_was_sampled(
    library: LibraryStore, tmp_path: Path, film: Film, asked: list[str]
) -> None:
    a, b = film(tmp_path / "a.mp4", RED, GREEN), film(tmp_path / "b.mp4", BLUE)
    library.options = replace(library.options, sampling="exact")
    library.add(a)
    library.options = replace(library.options, sampling="quick")
    library.add([a, b])
    copy = tmp_path / "copy.mp4"
    shutil.copy(b, copy)
    library.options = replace(library.options, sampling="exact")
    assert library.add(copy).copied == 1
    assert asked == ["exact", "quick"]
    assert sampled(library) == {"a.mp4": "exact", "b.mp4": "quick", "copy.mp4": "quick"}
    library.reencode("colours-2")
    assert sorted(asked[2:]) == ["exact", "quick", "quick"]  # two files are read at once
    assert sampled(library) == {"a.mp4": "exact", "b.mp4": "quick", "copy.mp4": "quick"}
    assert library.verify().clean
    library.remove("b.mp4")
    film(tmp_path / "copy.mp4", GREEN)
    library.add(copy)
    assert sampled(library) == {"a.mp4": "exact", "copy.mp4": "exact"}


def test_quick_vectors_are_those_of_exact_ones_where_nothing_moves(
    library: LibraryStore, tmp_path: Path, film: Film
) -> None:
    path = film(tmp_path / "a.mp4", RED, GREEN, BLUE, seconds=4)
    library.add(path)
    rows = StoredVectors.find(library.snapshot().vision, 1)
    cuts = library.videos()[0].shots
    library.remove("a.mp4")
    library.options = replace(library.options, sampling="quick")
    library.add(path)
    again = StoredVectors.find(library.snapshot().vision, 2)
    assert rows is not None
    assert again is not None
    assert np.allclose(rows.half, again.half, atol=0.01)
    assert library.videos()[0].shots == pytest.approx(cuts, abs=0.21)
    assert len(cuts) == 2


def test_a_picture_that_stays_is_encoded_once(
    library: LibraryStore, tmp_path: Path, film: Film, light: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    plain = light.Colours.encode_images

    def count(self: Any, images: Any) -> Any:
        seen.append(len(images))
        return plain(self, images)

    monkeypatch.setattr(light.Colours, "encode_images", count)
    library.options = replace(library.options, sampling="quick")
    library.add(film(tmp_path / "a.mp4", RED, seconds=15, options={"g": "25"}))
    assert library.videos()[0].clips == 10
    assert sum(seen) < 8


def test_parts_of_one_sampling_are_not_taken_for_the_other(tmp_path: Path) -> None:
    from types import SimpleNamespace

    encoder = SimpleNamespace(name="colours", fingerprint="print", dim=4, short_side=32)
    settings = reading.ReadSettings(tmp_path, 1.5, encoder, AddOptions(), None)  # type: ignore[arg-type]
    folders = {settings.video_parts(SimpleNamespace(hash="abc", sampling=s)).folder for s in ("exact", "quick")}  # type: ignore[arg-type]
    assert len(folders) == 2


def test_every_shard_samples_as_it_is_told(light: ModuleType, tmp_path: Path, film: Film, asked: list[str]) -> None:
    make_shards(tmp_path / "shards", 2, encoder="colours", clip_seconds=1.5)
    films = [film(tmp_path / f"{i}.mp4", (60 * i, 0, 200), seconds=1) for i in range(3)]
    with open_store(tmp_path / "shards") as library:
        library.options = replace(library.options, sampling="quick", jobs=1)
        assert library.add(films).added == 3
    assert asked == ["quick"] * 3
