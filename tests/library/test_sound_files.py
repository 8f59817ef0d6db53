"""Recordings without pictures: in the library like videos, found by what is said in them."""

from __future__ import annotations

import runpy
import shutil
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from momentseek.api.library import Library
from momentseek.media.probe import probe

LIGHT = Path(__file__).parent / "light.py"
SECONDS = 12.0


@pytest.fixture
def library(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A film, and a recording with subtitles of its own."""
    from momentseek.recognition.encoders import registry

    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(LIGHT))["install"]()
    films = tmp_path / "films"
    films.mkdir()
    make_video(films / "red.mp4", [(6.0, (220, 20, 20))], rate=5, size=(64, 48))
    with wave.open(str(films / "talk.wav"), "wb") as written:
        written.setparams((1, 2, 16_000, 0, "NONE", ""))
        tone = 8000 * np.sin(np.arange(round(SECONDS * 16_000)) * 0.1)
        written.writeframes(tone.astype("<i2").tobytes())
    (films / "talk.srt").write_text("1\n00:00:04,000 --> 00:00:07,000\nWater the tomatoes every morning.\n")
    with Library.open(tmp_path / "library", create=True, encoder="colours") as opened:
        assert opened.add(films).added == 2
        yield opened


def test_audio_file_is_found_by_speech_only(library: Library) -> None:
    (talk,) = [video for video in library.videos() if video.name == "talk.wav"]
    assert (talk.width, talk.height, talk.clips, talk.audio, talk.cues) == (0, 0, 0, True, 1)
    assert talk.duration == pytest.approx(SECONDS, abs=0.01)
    (hit,) = library.search("said:tomatoes")
    assert (hit.name, hit.start, hit.end) == ("talk.wav", 4.0, 7.0)
    assert {one.name for one in library.search("red", all=True) if "vision" in one.streams} == {"red.mp4"}
    assert "talk.wav" in {one.name for one in library.search("tomatoes")}
    assert library.verify().clean
    status = library.status()
    assert (status.unread, status.undescribed, status.unseen) == (1, 1, 0)  # the film alone has pictures


def test_it_has_a_drawing_and_can_be_cut_and_exported(library: Library, tmp_path: Path) -> None:
    (hit,) = library.search("said:tomatoes")
    assert library.thumbnail(hit)[8:12] == b"WEBP"
    library.cut(hit, tmp_path / "clip.mp4")
    clip = probe(tmp_path / "clip.mp4")
    assert (clip.width, clip.audio) == (0, True)
    assert clip.duration == pytest.approx(3.0, abs=0.1)
    from momentseek.search.export import render

    assert " AA    C " in render([hit], "tomatoes", "edl").text
    assert 'hasVideo="1"' not in render([hit], "tomatoes", "fcpxml").text


def test_it_is_copied_moved_encoded_again_removed_and_compacted(library: Library, tmp_path: Path) -> None:
    films = tmp_path / "films"
    shutil.copy(films / "talk.wav", films / "copy.wav")
    assert library.add(films).copied == 1
    (films / "copy.wav").rename(films / "moved.wav")
    assert library.add(films).moved == 1
    library.reencode("colours-2")
    assert library.search("said:tomatoes")[0].name == "talk.wav"
    library.remove(films / "talk.wav")
    library.compact()
    assert [video.name for video in library.videos()] == ["red.mp4", "moved.wav"]
    assert library.verify().clean


def test_a_library_of_recordings_alone(library: Library, tmp_path: Path) -> None:
    with Library.open(tmp_path / "sounds", create=True, encoder="colours") as sounds:
        sounds.add(tmp_path / "films" / "talk.wav")
        assert sounds.search("tomatoes")[0].name == "talk.wav"
        assert not [hit for hit in sounds.search("red", all=True) if "vision" in hit.streams]
        assert sounds.verify().clean
