"""Adding videos: what is read, what is not, and what comes of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.ingest import decoding as reading
from momentseek.library.options import WritePace
from momentseek.library.report import IngestNote, IngestStep
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.media.decode import frames

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
Film = Callable[..., Path]


def at_path(library: LibraryStore, path: Path) -> Video | None:
    return next((video for video in library.videos() if video.path == path), None)


def said(library: LibraryStore, words: str) -> list[int]:
    sql = "SELECT video FROM cues WHERE id IN (SELECT rowid FROM speech_words WHERE speech_words MATCH ?)"
    return [row[0] for row in library.catalog.rows(sql, (words,))]


def named(library: LibraryStore, words: str) -> list[int]:
    return [row[0] for row in library.catalog.rows("SELECT rowid FROM name_words WHERE name_words MATCH ?", (words,))]


def test_each_clip_has_the_vector_of_its_middle_frame(library: LibraryStore, films: Path, light: ModuleType) -> None:
    report = library.add(films)
    assert (report.added, report.failed, report.unchanged) == (3, [], 0)
    assert [video.name for video in library.videos()] == ["a.mp4", "b.mp4", "deep/c.mkv"]
    state = library.snapshot()
    for video in library.videos():
        rows = StoredVectors.find(state.vision, video.id)
        assert rows is not None
        pictures = [frame.pixels for frame in frames(video.path, 1 / 1.5, short_side=32)]
        want = light.Colours().encode_images(pictures)
        np.testing.assert_array_equal(rows.half, want.astype(np.float16))
        assert len(rows) == video.clips == round(video.duration / 1.5)


def test_what_is_said_is_kept_with_one_row_per_cue(library: LibraryStore, films: Path, light: ModuleType) -> None:
    library.add(films)
    b = library.videos()[1]
    (cue,) = library.catalog.cues(b.id)
    assert (cue.start, cue.end, cue.text) == (1.0, 2.0, "It is blue.")
    rows = StoredVectors.find(library.snapshot().speech, b.id)
    assert rows is not None
    np.testing.assert_array_equal(rows.half, light.Letters().encode(["It is blue."]).astype(np.float16))
    assert said(library, "blue") == [b.id]


def test_small_videos_share_a_segment(library: LibraryStore, films: Path) -> None:
    library.add(films)
    assert [row.videos for row in library.catalog.segments("vision")] == [3]
    assert len(list(library.paths.segments.iterdir())) == 2  # and one for speech


def test_unchanged_files_are_not_read(library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.add(films)
    before = library.snapshot()
    monkeypatch.setattr(reading, "content_hash", lambda path: pytest.fail("read"))
    report = library.add(films)
    assert (report.unchanged, report.in_library, report.seconds) == (3, 3, 0)
    assert [s.name for s in library.snapshot().vision] == [s.name for s in before.vision]


def test_a_touched_file_is_hashed_but_not_encoded(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    os.utime(films / "a.mp4", (1, 1))
    monkeypatch.setattr(reading, "decode_video", lambda *_: pytest.fail("decoded"))
    assert library.add(films).unchanged == 3
    video = at_path(library, films / "a.mp4")
    assert video is not None
    assert video.mtime_ns == 1_000_000_000


def test_a_changed_file_replaces_the_old_one_under_a_new_id(library: LibraryStore, films: Path, film: Film) -> None:
    library.add(films)
    old = at_path(library, films / "a.mp4")
    film(films / "a.mp4", BLUE, BLUE, RED)
    report = library.add(films)
    new = at_path(library, films / "a.mp4")
    assert old is not None
    assert new is not None
    assert (report.changed, report.added, report.unchanged) == (1, 0, 2)
    assert new.id > old.id
    assert new.clips == 6
    assert library.snapshot().gone.tolist() == [old.id]
    assert library.verify().clean


def test_a_moved_file_keeps_its_vectors(library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.add(films)
    (films / "new").mkdir()
    shutil.move(films / "a.mp4", films / "new" / "holiday.mp4")
    monkeypatch.setattr(reading, "decode_video", lambda *_: pytest.fail("decoded"))
    report = library.add(films)
    assert (report.moved, report.unchanged) == (1, 2)
    video = at_path(library, films / "new" / "holiday.mp4")
    assert video is not None
    assert (video.id, video.name) == (1, "new/holiday.mp4")
    assert named(library, "holiday") == [1]
    assert named(library, "a") == []
    assert library.verify().clean


def test_a_moved_file_with_other_subtitles_gets_them(library: LibraryStore, films: Path) -> None:
    library.add(films)
    shutil.move(films / "b.mp4", films / "z.mp4")
    report = library.add(films)
    video = at_path(library, films / "z.mp4")
    assert report.moved == 1
    assert video is not None
    assert video.cues == 0
    assert at_path(library, films / "b.mp4") is None
    assert library.verify().clean


def test_a_copy_takes_the_vectors_that_are_there(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    shutil.copy(films / "a.mp4", films / "copy.mp4")
    monkeypatch.setattr(reading, "decode_video", lambda *_: pytest.fail("decoded"))
    assert library.add(films).copied == 1
    state = library.snapshot()
    first, second = StoredVectors.find(state.vision, 1), StoredVectors.find(state.vision, 4)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.codes, second.codes)
    assert library.verify().clean


def test_new_subtitles_are_read_without_decoding(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    monkeypatch.setattr(reading, "decode_video", lambda *_: pytest.fail("decoded"))
    (films / "b.srt").write_text(
        "1\n00:00:00,500 --> 00:00:01,000\nNo, green!\n\n2\n00:00:02,000 --> 00:00:02,500\nOr?\n"
    )
    assert library.add(films).refreshed == 1
    video = at_path(library, films / "b.mp4")
    assert video is not None
    assert video.name == "b.mp4"
    assert [cue.text for cue in library.catalog.cues(video.id)] == ["No, green!", "Or?"]
    assert said(library, "blue") == []
    assert library.verify().clean


def test_more_cues_than_a_video_can_hold_are_left_out(library: LibraryStore, films: Path) -> None:
    def write_cues(path: Path, each_second: int) -> None:
        times = [(i // each_second, 1000 * (i % each_second) // each_second) for i in range(40 * each_second)]
        path.write_text(
            "".join(f"00:00:{s:02d},{ms:03d} --> 00:00:{s:02d},999\nLine {s}, {ms}.\n\n" for s, ms in times)
        )

    write_cues(films / "b.srt", 250)
    told: list[IngestStep | IngestNote] = []
    library.add(films, progress=told.append)
    video = at_path(library, films / "b.mp4")
    assert video is not None
    assert video.duration < 10
    assert video.cues == 100
    wanted = "b.srt: 9,900 of 10,000 cues left out, more than 10 per second of video; check that the subtitles belong"
    assert any(wanted in event.text for event in told if isinstance(event, IngestNote))
    write_cues(films / "b.srt", 125)
    assert library.add(films).refreshed == 1  # read again without decoding the video
    again = at_path(library, films / "b.mp4")
    assert again is not None
    assert again.cues == 100
    assert "4,900 of 5,000 cues left out" in again.notes[0]


def test_the_folder_of_subtitles_is_remembered(library: LibraryStore, films: Path, tmp_path: Path) -> None:
    folder = tmp_path / "subtitles"
    folder.mkdir()
    (folder / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nElsewhere.\n")
    library.add(films, subtitles=folder)
    assert library.videos()[0].cues == 1
    assert library.add(films).unchanged == 3


def test_a_long_video_in_parts_equals_one_in_one_go(
    library: LibraryStore, light: ModuleType, tmp_path: Path, film: Film, content: Callable[[LibraryStore], Any]
) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    film(folder / "long.mp4", *[RED, GREEN, BLUE] * 8, seconds=5)
    library.options = replace(library.options, sampling="exact")
    library.add(folder)
    with LibraryStore.open(tmp_path / "other", create=True, encoder="colours") as other:
        other.options = replace(library.options, pace=WritePace(part_clips=7))
        other.add(folder)
        whole, parts = content(library)["long.mp4"], content(other)["long.mp4"]
    assert library.videos()[0].clips == 80
    assert parts[0] == whole[0]
    assert len(whole[2]) == 23
    assert parts[2] == whole[2]  # cuts
    assert not list((tmp_path / "other" / "work").iterdir())


def test_progress_tells_files_and_failures(library: LibraryStore, films: Path) -> None:
    (films / "bad.mp4").write_bytes(b"no video" * 100)
    told: list[IngestStep | IngestNote] = []
    library.add(films, progress=told.append)
    notes = [event for event in told if isinstance(event, IngestNote)]
    steps = [event for event in told if isinstance(event, IngestStep)]
    assert [note.kind for note in notes] == ["failed"]
    assert notes[0].text.startswith("bad.mp4: ")
    assert (steps[-1].files, steps[-1].of_files, steps[-1].bytes) == (4, 4, steps[-1].of_bytes)
    assert steps[-1].seconds == pytest.approx(18.0)


def test_a_failed_file_waits_for_retry_or_change(library: LibraryStore, films: Path, film: Film) -> None:
    good = (films / "a.mp4").read_bytes()
    (films / "a.mp4").write_bytes(b"")
    assert [f.reason for f in library.add(films).failed] == ["is empty; get another copy"]
    report = library.add(films)
    assert (report.failed_before, report.failed) == (1, [])
    assert library.retry().failed[0].path == films / "a.mp4"
    assert library.failures()[0].tries == 2
    (films / "a.mp4").write_bytes(good)
    assert library.retry().added == 1
    assert library.failures() == []
    assert at_path(library, films / "a.mp4").name == "a.mp4"  # type: ignore[union-attr]


def test_retry_forgets_files_that_are_gone(library: LibraryStore, films: Path) -> None:
    (films / "bad.mp4").write_bytes(b"x")
    library.add(films)
    (films / "bad.mp4").unlink()
    assert library.retry().failed == []
    assert library.failures() == []


def test_encoders_are_not_mixed(library: LibraryStore, films: Path) -> None:
    library.add(films)
    with pytest.raises(MomentseekError, match=r"momentseek reencode --library .* --encoder colours-2"):
        LibraryStore.open(library.path, encoder="colours-2")
    with LibraryStore.open(library.path, encoder="colours") as same:
        assert len(same.videos()) == 3


def test_an_encoder_that_changed_under_its_name_is_refused(
    library: LibraryStore, films: Path, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from momentseek.recognition.encoders import registry

    library.add(films)
    registry.IMAGE_TEXT_ENCODERS["colours"] = lambda: light.Colours("3")
    with LibraryStore.open(library.path) as again, pytest.raises(MomentseekError, match="another version of 'colours'"):
        again.add(films)


def test_speech_is_filled_in_when_its_encoder_arrives(
    library: LibraryStore, films: Path, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from momentseek.recognition.encoders import registry

    kept = registry.TEXT_ENCODERS.pop("minilm")
    report = library.add(films)
    assert "minilm is not installed" in report.notes[0]
    assert library.snapshot().speech == ()
    assert library.verify().clean
    registry.TEXT_ENCODERS["minilm"] = kept
    with LibraryStore.open(library.path) as again:
        again.add(films)
        assert [s.ids.tolist() for s in again.snapshot().speech] == [[2]]
        assert again.verify().clean


def test_an_encoder_that_gives_nonsense_stops_the_run(
    library: LibraryStore, films: Path, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(light.Colours, "encode_images", lambda self, images: np.ones((len(images), 4), np.float32))
    with pytest.raises(MomentseekError, match="not of length 1"):
        library.add(films)
    assert library.videos() == []


def test_an_empty_library_can_be_asked(library: LibraryStore) -> None:
    assert library.snapshot().vision == ()
    assert library.verify().clean
    assert library.status().videos == 0
    library.compact()


def test_opening_makes_a_library_where_its_folder_can_lie(light: ModuleType, films: Path, tmp_path: Path) -> None:
    with LibraryStore.open(tmp_path / "new", encoder="colours") as library:
        assert library.add(films).added == 3
    with LibraryStore.open(tmp_path / "new") as library:
        assert len(library.videos()) == 3
    with pytest.raises(MomentseekError, match="create=True"):
        LibraryStore.open(tmp_path / "no" / "such" / "folder")
    with pytest.raises(MomentseekError, match="has no library"):
        LibraryStore.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "no").exists()
    LibraryStore.open(tmp_path / "no" / "such" / "folder", create=True).close()
