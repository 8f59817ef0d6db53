"""``momentseek transcript``: show a transcript, and correct it with a file or in an editor."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.library.cue_vectors import replace_cues
from momentseek.library.store import LibraryStore
from momentseek.library.tracks.speech import Transcript, finish_transcript, spoken_cues
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech.transcript import cues_from_words

LIGHT = Path(__file__).parent.parent / "library" / "light.py"
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_video: Callable[..., Path]) -> Run:
    """The command, on a library with a transcribed talk and a film with subtitles."""
    from momentseek.recognition.encoders import registry

    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(LIGHT))["install"]()
    films = tmp_path / "films"
    films.mkdir()
    make_video(films / "talk.mp4", [(3.0, (220, 20, 20))], rate=5, size=(64, 48))
    make_video(films / "loud.mp4", [(3.0, (20, 20, 220))], rate=5, size=(64, 48), audio=True)
    make_video(films / "film.mp4", [(3.0, (20, 220, 20))], rate=5, size=(64, 48))
    (films / "film.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\nwritten by hand\n")
    place = tmp_path / "library"
    with LibraryStore.open(place, create=True, encoder="colours") as library:
        library.add(films)
        (talk,) = [video for video in library.videos() if video.name == "talk.mp4"]
        texts = " a tail", " of two", " cities.", " It was", " noise."
        words = [SpokenWord(0.5 * i, 0.5 * i + 0.5, text) for i, text in enumerate(texts)]
        heard = Transcript(talk.id, "whisper-base", "en", tuple(cues_from_words(words)), fingerprint="print")
        replace_cues(
            library, talk.id, spoken_cues(heard), lambda: finish_transcript(library.catalog, heard, talk.duration)
        )

    def command(*arguments: object) -> str:
        words = ["transcript", *map(str, arguments), "--library", str(place)]
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return result.output

    return command


def test_file_corrects_a_transcript(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "talk.srt"
    run("show", "talk.mp4", "--out", file)
    file.write_text(file.read_text().replace("a tail", "A tale").partition("\n2\n")[0])
    assert "2 cues corrected" in run("import", "talk.mp4", file)
    assert run("show", "talk.mp4", "--format", "text") == "A tale of two cities.\n"
    (cue,) = json.loads(run("show", "talk.mp4", "--format", "json"))["cues"]
    assert (cue["edited"], cue["start"], cue["end"]) == (True, 0.0, 1.5)
    assert [word["start"] for word in cue["words"] if word["text"] == "cities."] == [1.0]
    assert run("show", "talk.mp4", "--format", "vtt").startswith("WEBVTT")
    assert "0 cues corrected" in run("talk.mp4", "--import", file)


def test_former_spellings_work_and_print_the_current_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "edit", lambda text, extension: None)
    note = "momentseek: `transcript VIDEO` is now `transcript {}`; the former name still works for the time being\n"
    assert run("talk.mp4") == note.format("show VIDEO") + run("show", "talk.mp4")
    assert run("talk.mp4", "--edit") == note.format("edit VIDEO") + "0 cues corrected\n"


def test_silent_video_is_reported(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "library"
    asked = f"run: momentseek transcribe loud.mp4 --library {place}"
    assert run("show", "loud.mp4").strip() == f"loud.mp4: has no subtitles, and has not been transcribed; {asked}"
    with LibraryStore.open(place) as library:
        (loud,) = [video for video in library.videos() if video.name == "loud.mp4"]
        heard = Transcript(loud.id, "whisper-base", "en", (), fingerprint="print")
        replace_cues(library, loud.id, (), lambda: finish_transcript(library.catalog, heard, loud.duration))
    assert "loud.mp4: no speech was recognised in it" in run("show", "loud.mp4")


def test_editor_corrects_a_transcript(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "edit", lambda text, extension: text.replace("noise", "the age"))
    assert "1 cue corrected" in run("edit", "talk.mp4")
    assert run("show", "talk.mp4", "--format", "text").splitlines()[-1] == "It was the age."
    monkeypatch.setattr(click, "edit", lambda text, extension: None)  # closed without saving
    assert "0 cues corrected" in run("talk.mp4", "--edit")


def test_rejects_invalid_corrections(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.srt"
    file.write_text("no cues here")
    with pytest.raises(MomentseekError, match="no cue found"):
        run("talk.mp4", "--import", file)
    with pytest.raises(MomentseekError, match="has no transcript by speech recognition"):
        run("film.mp4", "--edit")
    with pytest.raises(MomentseekError, match="choose one of"):
        run("talk.mp4", "--edit", "--out", file)
