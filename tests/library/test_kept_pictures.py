"""Pictures are kept for the second encoder, so that no video is decoded twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from momentseek.library import kept_pictures
from momentseek.library.kept_pictures import KeptPictures, PictureKeeper, drop_unwanted_pictures
from momentseek.library.options import WritePace
from momentseek.library.report import AddInterrupted
from momentseek.library.store import LibraryStore
from momentseek.library.tracks import second_pass
from momentseek.library.tracks.second_pass import SecondPass
from momentseek.library.video_parts import PARTS_FOLDER

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
BOTH = "colours+shades"
Film = Callable[..., Path]
Content = Callable[[LibraryStore], dict[str, Any]]


@pytest.fixture
def both(light: ModuleType, tmp_path: Path) -> Any:
    """An empty library with two encoders."""
    with LibraryStore.open(tmp_path / "library", create=True, encoder=BOTH) as opened:
        yield opened


def folders(library: LibraryStore) -> list[Path]:
    return sorted((library.path / PARTS_FOLDER).glob("*"))


def refuse(*_: object, **__: object) -> None:
    pytest.fail("a video is decoded for the second time")


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def add_without_second(library: LibraryStore, films: Path, patch: pytest.MonkeyPatch) -> None:
    """Add videos, and stop when the second pass begins."""
    with patch.context() as inner:
        inner.setattr(SecondPass, "refill", stop)
        with pytest.raises(AddInterrupted):
            library.add(films)


def test_nothing_is_decoded_twice(both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_pass, "sparse_frames", refuse)
    report = both.add(films)
    assert (report.added, report.seen, report.pictures) == (3, 3, 6)
    assert folders(both) == []
    assert both.verify().clean


def test_pictures_wait_for_a_pass_that_was_stopped(
    both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_without_second(both, films, monkeypatch)
    assert len(folders(both)) == 3
    monkeypatch.setattr(second_pass, "sparse_frames", refuse)
    assert both.encode().seen == 3
    assert folders(both) == []


def test_a_long_video_that_was_interrupted_has_all_its_pictures(
    both: LibraryStore, tmp_path: Path, film: Film, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = film(tmp_path / "long.mp4", *[RED, GREEN, BLUE] * 3, seconds=3)
    both.options = replace(both.options, pace=WritePace(part_clips=4))
    with LibraryStore.open(tmp_path / "whole", create=True, encoder=BOTH) as whole:
        whole.options = both.options
        whole.add(path)
        want = content(whole)
    real, saved = KeptPictures.save, []

    def save(self: KeptPictures, *part: Any) -> None:
        if len(saved) == 2:
            raise KeyboardInterrupt
        saved.append(part)
        real(self, *part)

    with monkeypatch.context() as patch:
        patch.setattr(KeptPictures, "save", save)
        with pytest.raises(AddInterrupted):
            both.add(path)
    monkeypatch.setattr(second_pass, "sparse_frames", refuse)
    report = both.add(path)
    assert report.resumed
    assert content(both) == want
    assert folders(both) == []


@pytest.mark.parametrize("damage", ["gone", "cut", "changed", "empty"])
def test_damaged_pictures_are_decoded_again(
    damage: str, both: LibraryStore, films: Path, tmp_path: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LibraryStore.open(tmp_path / "whole", create=True, encoder=BOTH) as whole:
        whole.add(films)
        want = content(whole)
    add_without_second(both, films, monkeypatch)
    for folder in folders(both):
        (part,) = folder.iterdir()
        data = bytearray(part.read_bytes())
        data[len(data) // 2] ^= 0xFF
        changed = {"cut": bytes(data[: len(data) // 2]), "changed": bytes(data), "empty": b""}
        if damage == "gone":
            part.unlink()
        else:
            part.write_bytes(changed[damage])
    assert both.encode().seen == 3
    assert content(both) == want
    assert both.verify().clean


def test_without_room_the_second_pass_decodes(both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_pictures, "MIN_FREE_BYTES", 10**18)
    decoded = []
    real = second_pass.sparse_frames
    monkeypatch.setattr(second_pass, "sparse_frames", lambda *given: decoded.append(given) or real(*given))
    assert both.add(films).seen == 3
    assert len(decoded) == 3


@pytest.mark.parametrize("writer", ["add", "compact"])
def test_pictures_of_removed_videos_are_deleted_by_the_next_writer(
    writer: str, both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_without_second(both, films, monkeypatch)
    both.remove(["a.mp4", "b.mp4"])
    both.options = replace(both.options, second_pass=False)
    if writer == "add":
        both.add(films / "deep")
    else:
        both.compact()
    assert len(folders(both)) == 1


def test_pictures_of_a_video_that_is_half_done_stay(both: LibraryStore) -> None:
    work = both.path / PARTS_FOLDER
    for name in ("aa-0123", "aa.pictures16", "bb.pictures16"):
        (work / name).mkdir(parents=True)
    drop_unwanted_pictures(both.catalog)
    assert sorted(path.name for path in work.iterdir()) == ["aa-0123", "aa.pictures16"]


def test_pictures_come_back_as_they_were(tmp_path: Path, light: ModuleType) -> None:
    kept = KeptPictures(tmp_path, "content", 16)
    keeper = PictureKeeper(kept, light.Colours(), 1.5)
    shown = [RED, RED, GREEN, BLUE, BLUE]
    for part in (shown[:3], shown[3:]):
        for colour in part:
            pixels = np.full((32, 64, 3), colour, np.uint8)
            keeper.take(light.Colours().encode_images([pixels])[0], pixels)
        keeper.save()
    clips = kept.clips(5)
    assert clips is not None
    assert clips.tolist() == [0, 2, 3]
    assert kept.clips(6) is None
    assert kept.clips(4) is None
    for clip, pixels in zip(clips.tolist(), kept.pictures(clips.tolist()), strict=True):
        assert pixels.shape == (16, 32, 3)
        np.testing.assert_allclose(pixels.mean(axis=(0, 1)), shown[clip], atol=4)
