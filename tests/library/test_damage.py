"""Flipped bits: found, named, never given a fresh hash, and mended by what is proven sound alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import Catalog
from momentseek.library.merging import find_damage, refuse_damage
from momentseek.library.options import WritePace
from momentseek.library.segments import sum_videos
from momentseek.library.store import LibraryStore

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
NONE_GONE = np.zeros(0, np.int64)
Content = Callable[[LibraryStore], dict[str, Any]]
Film = Callable[..., Path]


def file_of(library: LibraryStore, stream: str = "vision", at: int = 0) -> Path:
    return library.paths.segments / f"{library.catalog.segments(stream)[at].name}{segments.SEGMENT_SUFFIX}"


def flip(path: Path, byte: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


def flip_vector(library: LibraryStore, video: str, stream: str = "vision") -> Path:
    """Flip the lowest bit of one number in a video's float16 rows: the copies still agree, the length is still 1."""
    (id,) = (v.id for v in library.videos() if v.name == video)
    for row in library.catalog.segments(stream):
        found = segments.read_segment(library.paths.segments, row.name)
        places = np.flatnonzero(found.ids == id)
        if len(places):
            path = library.paths.segments / f"{row.name}{segments.SEGMENT_SUFFIX}"
            last = path.stat().st_size - (-found.half.nbytes % 64) - found.half.nbytes
            flip(path, last + int(found.offsets[places[0]]) * found.dim * 2)
            return path
    raise AssertionError(video)


@pytest.fixture
def films_added(library: LibraryStore, films: Path) -> LibraryStore:
    library.add(films)
    return library


def test_a_checksum_depends_on_every_byte_of_a_video_and_on_no_other_video() -> None:
    rng = np.random.default_rng(1)
    half = rng.normal(size=(7, 3)).astype(np.float16)
    ids, offsets = np.array([4, 9, 11]), np.array([0, 2, 2, 7])
    arrays = (half.astype(np.int8), half[:, 0].astype(np.float32), half)
    before = sum_videos(ids, offsets, *arrays)
    for at, array in enumerate(arrays):
        for byte in range(array.nbytes):
            changed = array.copy()
            changed.reshape(-1).view(np.uint8)[byte] ^= 1 << byte % 8
            row = byte * len(array) // array.nbytes
            after = sum_videos(ids, offsets, *arrays[:at], changed, *arrays[at + 1 :])
            assert (after != before).tolist() == [row < 2, False, row >= 2]
    assert (sum_videos(np.array([5, 9, 11]), offsets, *arrays) != before).tolist() == [True, False, False]
    assert (sum_videos(ids, np.array([0, 2, 3, 7]), *arrays) != before).tolist() == [False, True, True]
    assert sum_videos(ids, np.array([0, 2, 2**62, -7]), *arrays).tolist()[1:] == [0, 0]


def test_merging_does_not_launder_a_flipped_bit(
    films_added: LibraryStore, films: Path, film: Film, content: Content
) -> None:
    library, want = films_added, content(films_added)
    path = flip_vector(library, "a.mp4")
    assert any("a.mp4" in problem for problem in library.verify().problems)
    report = library.add(film(films / "long.mp4", BLUE, RED, GREEN, BLUE, seconds=6))  # larger, so it would be joined
    assert report.added == 1
    assert len(report.notes) == 1
    assert "1 video (a.mp4)" in report.notes[0]
    assert "momentseek verify --repair" in report.notes[0]
    assert path.exists()
    assert any("a.mp4" in problem for problem in library.verify().problems)
    assert library.verify(repair=True).clean
    assert sorted(content(library)) == ["b.mp4", "deep/c.mkv", "long.mp4"]
    assert library.retry().added == 1
    assert {name: found for name, found in content(library).items() if name != "long.mp4"} == want
    assert len(library.catalog.segments("vision")) < 4


def test_compacting_refuses_what_is_damaged_and_does_the_rest(
    films_added: LibraryStore, films: Path, film: Film, content: Content
) -> None:
    library = films_added
    library.remove("b.mp4")
    want = content(library)
    path = flip_vector(library, "deep/c.mkv")
    with pytest.raises(MomentseekError, match=r"1 video \(deep/c.mkv\) .* verify --repair"):
        library.compact()
    assert path.exists()
    assert library.catalog.gone().tolist() == [2]
    assert library.verify(repair=True).clean
    assert library.retry().added == 1
    assert library.compact().videos == 2  # the removed one, and what was damaged
    assert content(library) == want


def test_damage_to_what_was_removed_is_no_obstacle(films_added: LibraryStore) -> None:
    flip_vector(films_added, "b.mp4")
    films_added.remove("b.mp4")
    assert films_added.compact().videos == 1
    assert films_added.verify().clean


def test_a_segment_that_cannot_be_read_stops_no_adding(
    films_added: LibraryStore, films: Path, film: Film, content: Content
) -> None:
    library, want = films_added, content(films_added)
    flip(file_of(library), 3)
    shutil.copy(films / "a.mp4", films / "copy.mp4")
    report = library.add([film(films / "new.mp4", BLUE, seconds=1), films / "copy.mp4"])
    assert (report.added, len(report.failed)) == (1, 1)
    assert any("run: momentseek verify" in note for note in report.notes)
    assert not library.status().unfinished
    assert library.verify(repair=True).clean
    assert library.retry().copied == 1
    found = content(library)
    assert {name: found[name] for name in want} == want


def test_a_copy_of_a_damaged_video_is_not_made(films_added: LibraryStore, films: Path) -> None:
    flip_vector(films_added, "a.mp4")
    shutil.copy(films / "a.mp4", films / "copy.mp4")
    report = films_added.add(films / "copy.mp4")
    assert [failure.path.name for failure in report.failed] == ["copy.mp4"]
    assert "a.mp4" in report.failed[0].reason
    films_added.verify(repair=True)
    assert films_added.retry().in_library == 2
    assert films_added.verify().clean


def test_reencoding_makes_damaged_new_vectors_once_more(
    films_added: LibraryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = films_added
    library.options = replace(library.options, pace=WritePace(seconds=0.0))
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "set_encoder", _stop)  # in the transaction that would switch to the new vectors
        with pytest.raises(KeyboardInterrupt):
            library.reencode("colours-2")
    flip(file_of(library, "vision.new"), -70)
    report = library.reencode("colours-2")
    assert report.interrupted_before
    assert library.verify().clean


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def test_exported_features_are_checked(films_added: LibraryStore) -> None:
    refuse_damage(films_added.catalog, films_added.paths, ("vision", "speech"))
    flip_vector(films_added, "b.mp4", "speech")
    with pytest.raises(MomentseekError, match=r"b\.mp4"):
        refuse_damage(films_added.catalog, films_added.paths, ("vision", "speech"))


@pytest.mark.parametrize("lost", ["header", "end"])
def test_a_lost_header_or_end_costs_only_what_was_there(films_added: LibraryStore, content: Content, lost: str) -> None:
    want = content(films_added)
    path = file_of(films_added)
    data = path.read_bytes()
    path.write_bytes(b"?" * 40 + data[40:] if lost == "header" else data[:-70])
    assert films_added.verify(repair=True).clean
    kept = sorted(want) if lost == "header" else ["a.mp4", "b.mp4"]
    assert content(films_added) == {name: want[name] for name in kept}


@pytest.mark.parametrize("times", [24, pytest.param(240, marks=pytest.mark.figures)])
def test_no_flipped_bit_is_kept(
    times: int, films_added: LibraryStore, tmp_path: Path, content: Content, light: ModuleType
) -> None:
    want = content(films_added)
    files = {stream: file_of(films_added, stream).name for stream in ("vision", "speech")}
    films_added.close()
    chance = random.Random(times)
    for at in range(times):
        copy = tmp_path / "copy"
        shutil.copytree(films_added.path, copy)
        path = copy / "segments" / files["speech" if at % 4 == 3 else "vision"]
        flip(path, chance.randrange(path.stat().st_size), chance.randrange(8))
        with LibraryStore.open(copy) as library:
            assert not library.verify().clean
            assert library.verify(repair=True).clean
            found = content(library)
            assert found == {name: want[name] for name in found}
            assert sorted([*found, *(f.path.name for f in library.failures())]) == sorted(
                name if name in found else Path(name).name for name in want
            )
        shutil.rmtree(copy)


def test_damage_is_found_wherever_it_is(films_added: LibraryStore) -> None:
    (row,) = films_added.catalog.segments("vision")
    assert find_damage(films_added.paths, row, NONE_GONE) is None
    path = flip_vector(films_added, "a.mp4")
    found = find_damage(films_added.paths, row, NONE_GONE)
    assert found is not None
    assert found.videos == (1,)
    assert find_damage(films_added.paths, row, np.array([1])) is None
    path.write_bytes(path.read_bytes()[:100])
    found = find_damage(films_added.paths, row, NONE_GONE)
    assert found is not None
    assert (found.videos, found.count) == ((), 3)
