"""Which subtitles a video gets, and text tracks inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MediaError
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.find import by_preference, cues_of, text_tracks, track_cues

av = pytest.importorskip("av")
Track = tuple[str, str | None, Sequence[tuple[int, int, bytes]]]
HELLO = [(1500, 1500, b"<i>Hello</i> world"), (3200, 600, b"Bye.")]


def best_cues(path: Path, languages: Sequence[str] = ()) -> list[Cue]:
    """Return the cues of the best text track."""
    found = by_preference(text_tracks(path), languages)
    return track_cues(path, found[0]) if found else []


def video_with(path: Path, *texts: Track) -> Path:
    """A video of five seconds with text tracks: codec, language, and (start, duration, payload) in milliseconds."""
    with av.open(str(path), "w") as out:
        picture = out.add_stream("mpeg4" if path.suffix != ".webm" else "libvpx", rate=10)
        picture.width = picture.height = 32
        picture.pix_fmt = "yuv420p"
        streams = []
        for codec, language, _ in texts:
            stream = out.add_mux_stream(codec)
            stream.time_base = Fraction(1, 1000)
            if language:
                stream.metadata["language"] = language
            streams.append(stream)
        out.start_encoding()
        for shade in range(50):
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), shade * 5, np.uint8), format="rgb24")
            out.mux(picture.encode(frame))
        out.mux(picture.encode())
        for stream, (_, _, cues) in zip(streams, texts, strict=True):
            for start, duration, payload in cues:
                packet = av.Packet(payload)
                packet.stream, packet.time_base = stream, Fraction(1, 1000)
                packet.pts = packet.dts = start
                packet.duration = duration
                out.mux(packet)
    return path


def as_ass(text: bytes) -> bytes:
    return b"0,0,Default,,0,0,0,," + text.replace(b"<i>", b"{\\i1}").replace(b"</i>", b"{\\i0}")


def as_mov_text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text + b"\x00\x00\x00\x0cstyl\x00\x00\x00\x00"


@pytest.mark.parametrize(
    ("codec", "suffix", "wrap"),
    [
        ("subrip", ".mkv", bytes),
        ("webvtt", ".webm", bytes),
        ("ass", ".mkv", as_ass),
        ("mov_text", ".mp4", as_mov_text),
    ],
)
def test_text_tracks_of_each_codec(tmp_path: Path, codec: str, suffix: str, wrap: Callable[[bytes], bytes]) -> None:
    cues = [(start, duration, wrap(text)) for start, duration, text in HELLO]
    path = video_with(tmp_path / f"film{suffix}", (codec, "ger", cues))
    assert best_cues(path) == [Cue(1.5, 3.0, "Hello world", "de"), Cue(3.2, 3.8, "Bye.", "de")]


def test_chooses_tracks_by_language_and_skips_picture_tracks(tmp_path: Path) -> None:
    path = video_with(
        tmp_path / "film.mkv",
        ("dvd_subtitle", "eng", []),
        ("subrip", "fre", [(1000, 500, b"Salut.")]),
        ("subrip", "eng", [(1000, 500, b"Hi.")]),
    )
    assert [track.language for track in text_tracks(path)] == ["fr", "en"]
    assert [cue.text for cue in best_cues(path)] == ["Hi."]
    assert [cue.text for cue in best_cues(path, ["fr"])] == ["Salut."]
    assert cues_of(path, languages=["fr"]).sources[0].endswith(", fr)")


def test_video_without_text_has_no_cues(tmp_path: Path) -> None:
    path = video_with(tmp_path / "film.mp4")
    assert best_cues(path) == []
    assert cues_of(path) == cues_of(path).__class__()


def test_non_video_is_an_error_but_only_a_problem_for_cues(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(b"nothing")
    with pytest.raises(MediaError):
        best_cues(path)
    cues = cues_of(path)
    assert cues.cues == ()
    assert len(cues.problems) == 1


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n", encoding="utf-8")


def chosen(video: Path, folder: Path | None = None, languages: Sequence[str] | None = None) -> str:
    cues = cues_of(video, folder, languages)
    assert cues.problems == ()
    return " ".join(cue.text for cue in cues.cues)


def test_files_precede_tracks_and_languages_follow_preference(tmp_path: Path) -> None:
    video = video_with(tmp_path / "film.mkv", ("subrip", "eng", [(1000, 500, b"inside")]))
    write(tmp_path / "film.forced.srt", "forced")
    assert chosen(video) == "inside"
    write(tmp_path / "film.de.srt", "deutsch")
    assert chosen(video) == "deutsch"
    write(tmp_path / "film.en.sdh.srt", "[english]")
    assert chosen(video) == "[english]"
    write(tmp_path / "film.en.srt", "english")
    assert chosen(video) == "english"
    write(tmp_path / "film.srt", "unnamed")
    assert chosen(video) == "unnamed"
    assert chosen(video, languages=["deu", "en"]) == "deutsch"
    write(tmp_path / "texts/film.fr.srt", "français")
    assert chosen(video, tmp_path / "texts", ["de"]) == "français"


def test_broken_file_is_noted_and_the_next_one_used(tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_bytes(bytes(9999))
    write(tmp_path / "film.en.srt", "english")
    cues = cues_of(tmp_path / "film.mp4")
    assert [cue.text for cue in cues.cues] == ["english"]
    assert cues.sources == (str(tmp_path / "film.en.srt"),)
    assert len(cues.problems) == 1
    assert "film.srt: no cue found" in cues.problems[0]
