"""Reading subtitle files: bad files are refused quickly, with one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MediaError
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.read import MAX_SUBTITLE_BYTES, parse_subtitles, read_subtitles

SRT = b"1\n00:00:01,000 --> 00:00:02,000\nHello\n"


def test_reads_a_file_with_its_language(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    path.write_bytes(SRT)
    assert read_subtitles(path, "en") == [Cue(1.0, 2.0, "Hello", "en")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        bytes(5000),
        bytes(range(256)) * 50,
        b"Once upon a time\n" * 1000,
        b"<!DOCTYPE html><html><body><!-- 00:00:01,000 --> 00:00:02,000 -->\nHello</body></html>",
        b'<?xml version="1.0"?><tt/>',
        b"1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:04,000\n<i> </i>\n",
        b"\x1b$B" + b"a" * 999,
        b"\xff\xfe" * 999,
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    ],
)
def test_files_without_a_cue_are_refused(data: bytes) -> None:
    with pytest.raises(MediaError, match=r"x\.srt: no cue found"):
        parse_subtitles(data, "x.srt")


def test_tolerates_a_few_zero_bytes() -> None:
    assert parse_subtitles(SRT.replace(b"Hello", b"Hel\0lo"), "x.srt")[0].text == "Hello"


def test_rejects_a_large_file_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    with path.open("wb") as file:
        file.truncate(MAX_SUBTITLE_BYTES + 1)
    with pytest.raises(MediaError, match="20 MB is too large for a subtitle file"):
        read_subtitles(path)


def test_too_many_cues_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("momentseek.media.subtitles.read.MAX_CUES", 2_000)
    with pytest.raises(MediaError, match="more than 2,000 cues"):
        parse_subtitles(b"0:01 --> 0:02\na\n" * 2_001, "x.srt")


@pytest.mark.parametrize(
    "filling",
    [b"\n", b"1", b"-->", b"00:00:01,000 -->", b"<", b"<v a", b"&a", b"{\\p1", b"0:", b",", b" ", b"\xff", b"\xe9a "],
)
def test_large_garbage_is_fast(filling: bytes) -> None:
    """Two megabytes of garbage: a quadratic step would exceed the test's timeout."""
    data = SRT + b"[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,,,,," + filling * (2_000_000 // len(filling))
    try:
        assert parse_subtitles(data, "x.srt")
    except MediaError as e:
        assert "lines" in str(e)  # noqa: PT017


def test_pipes_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.srt")
    (tmp_path / "folder.srt").mkdir()
    (tmp_path / "loop.srt").symlink_to(tmp_path / "loop.srt")
    for name, reason in [
        ("pipe.srt", "not a regular file"),
        ("folder.srt", "not a regular file"),
        ("absent.srt", "cannot be read"),
        ("loop.srt", "cannot be read"),
        ("n\0l.srt", "cannot be read"),
    ]:
        with pytest.raises(MediaError, match=reason):
            read_subtitles(tmp_path / name)


near_subtitles = st.lists(
    st.sampled_from(
        [b"1", b"\n", b"\r", b"00:00:01,000", b" --> ", b"WEBVTT", b"[Events]\n", b"Dialogue: ", b"Format: ", b",",
         b"{\\p1}", b"<v A>", b"&amp;", b"\0", b"\xff\xfe", b"\xe9", b"0:00:01.00", b"\x1b$B", b"NOTE", b"hello", b"-"]
    )
).map(b"".join)  # fmt: skip


@given(st.binary(max_size=300) | near_subtitles, st.sampled_from(["x.srt", "x.vtt", "x.ass", "x.sbv", "x"]))
def test_arbitrary_bytes_give_cues_or_a_media_error(data: bytes, name: str) -> None:
    try:
        cues = parse_subtitles(data, name)
    except MediaError:
        return
    assert all(0 <= cue.start < cue.end and cue.text for cue in cues)
