"""Removing, compacting, verifying, repairing, encoding anew, watching."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import LibraryBusyError, MomentseekError
from momentseek.library import segments
from momentseek.library.database import TrackKind
from momentseek.library.location import library_folder
from momentseek.library.options import WritePace
from momentseek.library.report import AddInterrupted
from momentseek.library.scrub import SCRUB_FILE, scrub_library
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore, watch
from momentseek.media.subtitles.cues import Cue

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
Content = Callable[[LibraryStore], dict[str, Any]]
Film = Callable[..., Path]


def test_removing_marks_and_compacting_rewrites(library: LibraryStore, films: Path, content: Content) -> None:
    library.add(films)
    before = content(library)
    assert [video.name for video in library.remove("b.mp4")] == ["b.mp4"]
    assert library.snapshot().gone.tolist() == [2]
    old = library.snapshot()
    report = library.compact()
    assert (report.videos, report.after < report.before) == (1, True)
    assert library.snapshot().gone.tolist() == []
    assert [s.ids.tolist() for s in library.snapshot().vision] == [[1, 3]]
    assert library.snapshot().speech == ()
    assert content(library) == {name: before[name] for name in ("a.mp4", "deep/c.mkv")}
    assert library.verify().clean
    assert old.vision[0].half[3:5].astype(np.float32).sum() > 0  # a reader's snapshot outlives its files


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.mp4", ["a.mp4", "b.mp4"]),
        ("A*", ["a.mp4"]),
        ("[^a]*.MP4", ["b.mp4"]),
        ("c*", ["deep/c.mkv"]),
        ("deep/*", ["deep/c.mkv"]),
        ("c.mkv", ["deep/c.mkv"]),
        ("a.mp4", ["a.mp4"]),
    ],
)
def test_videos_are_named_by_pattern(library: LibraryStore, films: Path, pattern: str, names: list[str]) -> None:
    library.add(films)
    assert [video.name for video in library.matching([pattern])] == names
    assert [library.videos()[id - 1].name for id in library.catalog.ids(names=[pattern])] == names


def test_videos_are_named_by_path_and_folder(library: LibraryStore, films: Path) -> None:
    library.add(films)
    assert [v.name for v in library.matching([films / "deep"])] == ["deep/c.mkv"]
    assert [v.name for v in library.matching([films / "a.mp4"])] == ["a.mp4"]
    with pytest.raises(MomentseekError, match="not a video of this library"):
        library.remove("z.mp4")
    (films / "a.mp4").unlink()
    assert [v.name for v in library.remove(missing=True)] == ["a.mp4"]


def test_verify_notes_missing_files_and_orphans(library: LibraryStore, films: Path) -> None:
    library.add(films)
    (films / "a.mp4").unlink()
    (library.paths.segments / f"{'0' * 32}.vec").write_bytes(b"x")
    report = library.verify()
    assert report.clean
    assert any("a.mp4" in note for note in report.notes)
    assert any("nothing names" in note for note in report.notes)
    library.verify(repair=True)
    assert len(list(library.paths.segments.iterdir())) == 2


def damage(library: LibraryStore, stream: str, how: str) -> None:
    row = library.catalog.segments(stream)[0]
    path = library.paths.segments / f"{row.name}.vec"
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[-60] ^= 0x55
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.unlink()


@pytest.mark.parametrize(
    ("how", "kept"), [("flip", ["a.mp4", "b.mp4"]), ("cut", []), ("gone", [])], ids=["flip", "cut", "gone"]
)
def test_damaged_vectors_are_found_and_made_again(
    library: LibraryStore, films: Path, content: Content, how: str, kept: list[str]
) -> None:
    library.add(films)
    want = content(library)
    damage(library, "vision", how)
    assert not library.verify().clean
    report = library.verify(repair=True)
    assert report.clean
    assert report.repaired[0] == f"a damaged segment of what is seen dropped; {len(kept)} of its 3 videos kept"
    assert content(library) == {name: want[name] for name in kept}
    assert len(library.failures()) == 3 - len(kept)
    assert library.retry().added == 3 - len(kept)
    assert content(library) == want
    assert library.verify().clean


@pytest.mark.parametrize("array", ["codes", "scales", "half"])
def test_a_damaged_row_costs_its_own_video_only(
    library: LibraryStore, films: Path, content: Content, array: str
) -> None:
    library.add(films)
    want = content(library)
    (row,) = library.catalog.segments("vision")
    good = segments.read_segment(library.paths.segments, row.name)
    changed = {name: np.array(getattr(good, name)) for name in ("codes", "scales", "half")}
    bad = changed[array]
    bad[int(good.offsets[1])] = np.nan if bad.dtype.kind == "f" else -bad[int(good.offsets[1])]
    name = segments.write_segment(library.paths.segments, replace(good, **changed))
    with library.catalog.changes() as db:
        db.execute("UPDATE segments SET name = ? WHERE name = ?", (name, row.name))
    assert not library.verify().clean
    assert library.verify(repair=True).clean
    assert content(library) == {name: want[name] for name in ("a.mp4", "deep/c.mkv")}
    assert library.retry().added == 1
    assert content(library) == want


def test_damaged_speech_is_encoded_from_the_cues(library: LibraryStore, films: Path, content: Content) -> None:
    library.add(films)
    want = content(library)
    damage(library, "speech", "flip")
    report = library.verify()
    assert [p.split(": ", 1)[1] for p in report.problems] == [
        "its bytes are not those that were written",
        "what is said has no vectors",
    ]
    report = library.verify(repair=True)
    assert report.clean
    assert report.repaired[:2] == [
        "a damaged segment of what is said dropped; 0 of its 1 video kept",
        "what is said in 1 video was encoded again",
    ]
    assert content(library) == want


def test_tracks_searched_like_speech_have_no_vectors(library: LibraryStore, films: Path) -> None:
    library.add(films)
    (spoken,) = [video for video in library.videos() if video.cues]
    translated = TrackKind("translated", like="speech")
    library.catalog.add_kind(translated)
    with library.catalog.changes():
        library.catalog.insert_cues(spoken.id, [Cue(0.0, 1.0, "auf Deutsch")], translated)
    damage(library, "speech", "flip")
    assert library.verify(repair=True).clean
    assert len(library.videos()) == 3


def test_counts_that_do_not_agree_are_found(library: LibraryStore, films: Path) -> None:
    library.add(films)
    with library.catalog.changes() as db:
        library.catalog.update_video(1, clips=9)
        db.execute("DELETE FROM videos WHERE id = 3")
        db.execute("DELETE FROM cues")
    problems = library.verify().problems
    assert any("4 rows of vectors for 9 clips" in p for p in problems)
    assert any("holds a video 3 that the catalog does not know" in p for p in problems)
    assert any("0 cues, but should have 1" in p for p in problems)
    library.verify(repair=True)
    library.retry()
    library.add(films)
    assert library.verify().clean
    assert len(library.videos()) == 3


def test_vectors_of_another_length_are_found(library: LibraryStore, films: Path) -> None:
    library.add(films)
    row = library.catalog.segments("vision")[0]
    good = segments.read_segment(library.paths.segments, row.name)
    long = segments.build_segment("vision", good.ids.tolist(), [2 * good.vectors(at) for at in range(3)])
    name = segments.write_segment(library.paths.segments, long)
    with library.catalog.changes() as db:
        db.execute("UPDATE segments SET name = ? WHERE name = ?", (name, row.name))
    assert "not of length 1" in library.verify().problems[0]


def test_reencoding_switches_at_the_end(
    library: LibraryStore, films: Path, light: ModuleType, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    old = content(library)
    library.options = replace(library.options, pace=WritePace(seconds=0.0))
    with monkeypatch.context() as patch:
        stop = _interrupt_at(light.Colours("2"), 2)
        patch.setattr(light.Colours, "encode_images", stop)
        patch.setattr("momentseek.library.ingest.batches.FRAMES_PER_BATCH", 1)
        with pytest.raises(AddInterrupted):
            library.reencode("colours-2")
    assert content(library) == old
    assert library.verify().clean
    assert library.status().reencoding == "colours-2"
    report = library.reencode("colours-2")
    assert report.interrupted_before
    assert library.status().reencoding is None
    new = content(library)
    assert new.keys() == old.keys()
    assert new["a.mp4"][0][0] != old["a.mp4"][0][0]
    assert new["b.mp4"][0][1] == old["b.mp4"][0][1]
    assert library.encoders.vision.fingerprint == "colours-2"  # type: ignore[attr-defined]
    assert library.verify().clean
    with LibraryStore.open(library.path, encoder="colours-2") as again:
        assert again.add(films).unchanged == 3


def _interrupt_at(encoder: Any, count: int) -> Callable[..., Any]:
    calls: list[int] = []

    def encode(self: Any, images: Any) -> Any:
        calls.append(len(images))
        if sum(calls) > 4 + count:  # the first video has four clips
            raise KeyboardInterrupt
        return encoder._unit([image.reshape(-1, 3).mean(axis=0) / 255 for image in images])

    return encode


def test_reencoding_loses_nothing(library: LibraryStore, films: Path, film: Film, content: Content) -> None:
    library.add(films)
    before = content(library)
    film(films / "a.mp4", BLUE)
    with pytest.raises(MomentseekError, match="changed since it was added"):
        library.reencode("colours-2")
    (films / "a.mp4").unlink()
    with pytest.raises(MomentseekError, match="remove --missing"):
        library.reencode("colours-2")
    assert content(library) == before
    library.remove(missing=True)
    library.reencode("colours-2")
    assert len(library.videos()) == 2
    assert library.verify().clean


def test_watching_waits_until_a_file_stops_growing(library: LibraryStore, films: Path, film: Film) -> None:
    whole = film(films.parent / "new.mp4", GREEN, RED).read_bytes()
    steps = iter([whole[:100], whole[:1000], whole, None, None])

    def sleep(_: float) -> None:
        data = next(steps)
        if data is not None:
            (films / "new.mp4").write_bytes(data)

    reports = watch(library, [films], sleep=sleep)
    first = next(reports)
    assert first.added == 3
    second = next(reports)
    assert (second.added, second.failed) == (1, [])
    assert library.verify().clean


def test_many_additions_leave_few_segments(library: LibraryStore, tmp_path: Path, film: Film) -> None:
    for i in range(12):
        library.add(film(tmp_path / f"{i}.mp4", (20 * i, 0, 0), seconds=1))
    assert len(library.videos()) == 12
    assert len(library.catalog.segments("vision")) <= 4
    state = library.snapshot()
    ids = [int(id) for segment in state.vision for id in segment.ids]
    assert ids == sorted(ids) == list(range(1, 13))
    assert all(StoredVectors.find(state.vision, id) is not None for id in ids)
    assert library.verify().clean


def test_status_counts(library: LibraryStore, films: Path) -> None:
    (films / "bad.mp4").touch()
    library.add(films)
    library.remove("a.mp4")
    status = library.status()
    assert (status.videos, status.clips, status.cues, status.failures, status.gone) == (2, 8, 1, 1, 1)
    assert [row.stream for row in status.encoders] == ["vision", "speech"]
    assert status.seconds == pytest.approx(12.0)
    assert not status.unfinished


def test_a_library_by_name_or_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MOMENTSEEK_LIBRARY", raising=False)
    assert library_folder() == tmp_path / "momentseek" / "default"
    assert library_folder("films") == tmp_path / "momentseek" / "films"
    assert library_folder(f".{os.sep}films") == Path("films")
    monkeypatch.setenv("MOMENTSEEK_LIBRARY", "/data/films")
    assert library_folder() == Path("/data/films")


def test_clips_of_impossible_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="not possible"):
        LibraryStore.open(tmp_path / "l", create=True, clip_seconds=0.0)
    assert not (tmp_path / "l").exists()


def test_a_scrub_reads_everything_slowly_and_goes_on(library: LibraryStore, films: Path) -> None:
    library.add(films / "a.mp4")
    library.add(films / "b.mp4")
    names = sorted(row.name for row in library.catalog.segments())
    waits: list[float] = []
    report = scrub_library(library, 0.001, waits.append)
    assert (report.problems, report.resumed) == ([], False)
    assert report.files == len(names)
    assert report.bytes == sum((library.paths.segments / f"{name}.vec").stat().st_size for name in names)
    assert sum(waits[-1:]) > report.bytes / 1000 - 5
    flipped = library.paths.segments / f"{names[0]}.vec"
    data = bytearray(flipped.read_bytes())
    data[-1] ^= 1
    flipped.write_bytes(data)

    def stop(_: float) -> None:
        if (library.path / SCRUB_FILE).exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scrub_library(library, 0.001, stop)
    report = scrub_library(library, 1e6)
    assert report.resumed
    assert report.files == len(names) - 1
    assert [str(flipped) in text for text in report.problems] == [True]
    assert not (library.path / SCRUB_FILE).exists()
    with library.catalog.changes() as db:
        db.execute("UPDATE videos SET height = 1")
    assert any("videos" in text for text in library.scrub(1e6).problems)


def test_the_command_scrubs_for_a_timer(
    library: LibraryStore, films: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    library.add(films)
    library.close()
    assert "nothing wrong" in command("verify", "--scrub", "--library", library.path).stderr
    segment = next(library.paths.segments.glob("*.vec"))
    segment.write_bytes(segment.read_bytes()[:-1])
    done = command("verify", "--scrub", "100", "--library", library.path)
    assert (done.returncode, segment.name in done.stdout) == (1, True)


def test_what_keeps_the_word_indices_from_being_checked_is_no_damage(library: LibraryStore, films: Path) -> None:
    """A mount that cannot be written while changes wait in the log, a writer that is slow."""
    library.add(films)
    library.catalog._db.execute("PRAGMA query_only = ON")
    report = library.verify()
    assert report.problems == []
    assert any("its word indices were not checked" in note for note in report.notes)
    assert library.scrub().problems == []
    library.catalog._db.execute("PRAGMA query_only = OFF")
    library.catalog._db.execute("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(library.path / "catalog.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LibraryBusyError, match="another process has been writing"):
            library.verify()
    assert library.verify().clean
