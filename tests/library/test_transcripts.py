"""What a recogniser hears becomes cues of its video, once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.library.database import SPEECH
from momentseek.library.report import AddInterrupted
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import TrackCounts, track_counts, tracked_videos
from momentseek.library.tracks import speech
from momentseek.library.tracks.speech import transcript
from momentseek.media.decode import SAMPLE_RATE, sound
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.speech.models import transcriber_fingerprint
from momentseek.recognition.speech.transcript import CueEdit, TranscribedPart, spoken_cue

RED, BLUE = (200, 20, 20), (20, 20, 200)


def _cue(start: float, *words: str) -> Cue:
    return spoken_cue(tuple(SpokenWord(start + 0.2 * i, start + 0.2 * i + 0.2, f" {w}") for i, w in enumerate(words)))


class Parrot:
    """A recogniser's process that hears the same two parts in every file, and what a test tells it to suffer."""

    suffers: ClassVar[dict[str, Exception]] = {}
    hangs = False
    jobs: ClassVar[list[tuple[str, float]]] = []

    def __init__(self, spec: str, threads: int = 1) -> None:
        self.closed = Event()

    def hear(self, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        self.jobs.append((path.name, begin))
        if begin < 1.0:
            yield TranscribedPart(1.0, "en", (_cue(0.2, "a", "purple", "balloon"),))
        if self.hangs:
            self.closed.wait(60)
            raise MediaError("was closed")
        if error := self.suffers.get(path.name):
            raise error
        yield TranscribedPart(3.0, "en", (_cue(2.0, "lands", "softly"),))

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def parrot(monkeypatch: pytest.MonkeyPatch) -> type[Parrot]:
    monkeypatch.setattr(speech, "TranscriberProcess", Parrot)
    monkeypatch.setattr(speech, "transcriber_fingerprint", lambda spec: f"print of {spec}")
    Parrot.suffers, Parrot.jobs, Parrot.hangs = {}, [], False
    return Parrot


@pytest.fixture
def talks(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """Two films with sound, one of them with subtitles, and a silent one."""
    folder = tmp_path / "talks"
    folder.mkdir()
    film(folder / "a.mp4", RED, audio=True)
    film(folder / "b.mp4", BLUE, audio=True)
    (folder / "b.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\nwritten by hand\n")
    film(folder / "c.mp4", BLUE, RED)
    return folder


def texts(library: LibraryStore) -> dict[str, list[str]]:
    return {v.name: [cue.text for cue in library.catalog.cues(v.id)] for v in library.videos()}


HEARD = {"a.mp4": ["a purple balloon", "lands softly"], "b.mp4": ["written by hand"], "c.mp4": []}


def test_only_videos_with_sound_and_without_subtitles_are_transcribed(library: LibraryStore, talks: Path) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    report = library.add(talks)
    assert (report.added, report.heard) == (3, 1)
    assert texts(library) == HEARD
    (a,) = [v for v in library.videos() if v.name == "a.mp4"]
    assert tracked_videos(library.catalog, SPEECH, {v.id for v in library.videos()}) == {a.id}
    found = transcript(library.catalog, a.id)
    assert found is not None
    assert [w.text for w in found.cues[0].words] == [" a", " purple", " balloon"]
    assert (found.transcriber, found.language) == ("whisper-base", "en")
    assert library.verify().problems == []
    assert library.add(talks).heard == 0
    assert track_counts(library.catalog, SPEECH) == TrackCounts(1, a.duration, found=3, undone=0, failed=0)


def test_videos_added_without_transcription_can_be_transcribed_later(library: LibraryStore, talks: Path) -> None:
    library.add(talks)
    assert library.status().unheard == 1
    assert library.transcribe(["c*"]).heard == 0
    assert library.transcribe().heard == 1
    assert texts(library) == HEARD
    assert library.status().unheard == 0


def test_transcribed_parts_are_not_transcribed_again_after_an_interrupt(
    library: LibraryStore, talks: Path, parrot: type[Parrot], monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(talks)
    step = speech.TranscriptionPass.step

    def interrupt(self: Any) -> Any:
        found = step(self)
        if found.fresh:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(speech.TranscriptionPass, "step", interrupt)
    parrot.hangs = True
    with pytest.raises(AddInterrupted):
        library.transcribe()
    monkeypatch.setattr(speech.TranscriptionPass, "step", step)
    assert texts(library)["a.mp4"] == []  # nothing is searched before it is whole
    parrot.hangs = False
    assert library.transcribe().heard == 1
    assert parrot.jobs == [("a.mp4", 0.0), ("a.mp4", 1.0)]
    assert texts(library) == HEARD


def test_a_sound_that_cannot_be_heard_costs_one_video(library: LibraryStore, talks: Path, parrot: type[Parrot]) -> None:
    parrot.suffers = {"a.mp4": MediaError("its sound makes the recogniser stop; convert it")}
    library.options = replace(library.options, transcriber="whisper-base")
    report = library.add(talks)
    assert [noted.text for noted in report.noted] == [
        "its speech was not transcribed: its sound makes the recogniser stop; convert it"
    ]
    assert library.status().unhearable == 1
    assert library.transcribe().heard == 0  # not tried again unasked
    parrot.suffers = {}
    assert library.transcribe(again=True).heard == 1
    assert texts(library) == HEARD


def test_a_broken_recogniser_costs_no_pictures(library: LibraryStore, talks: Path, parrot: type[Parrot]) -> None:
    parrot.suffers = {"a.mp4": MomentseekError("the transcriber cannot be started")}
    library.options = replace(library.options, transcriber="whisper-base")
    report = library.add(talks)
    assert report.added == 3
    assert report.notes[-1] == "speech was not transcribed: the transcriber cannot be started"
    with pytest.raises(MomentseekError, match="cannot be started"):
        library.transcribe()


def test_subtitles_replace_what_was_heard(library: LibraryStore, talks: Path) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    (talks / "a.srt").write_text("1\n00:00:00,500 --> 00:00:02,000\ncorrected by hand\n")
    library.add(talks)
    assert texts(library)["a.mp4"] == ["corrected by hand"]
    assert tracked_videos(library.catalog, SPEECH, {v.id for v in library.videos()}) == frozenset()


def edited(library: LibraryStore, name: str = "a.mp4") -> tuple[int, list[tuple[str, bool]]]:
    (video,) = [v for v in library.videos() if v.name == name]
    found = transcript(library.catalog, video.id)
    assert found is not None
    return video.id, [(cue.text, at in found.edited) for at, cue in enumerate(found.cues)]


def test_a_correction_is_searched_marked_and_verified(library: LibraryStore, talks: Path) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    video, _ = edited(library)
    start, end = library.catalog.cues(video)[0].start, library.catalog.cues(video)[0].end
    before = library.catalog.content_number()
    after = library.edit_cues(video, [CueEdit(start, end, "a purple baboon")])
    assert [cue.text for cue in after.cues] == ["a purple baboon", "lands softly"]
    assert [word.start for word in after.cues[0].words] == pytest.approx([0.2, 0.4, 0.6])
    assert edited(library) == (video, [("a purple baboon", True), ("lands softly", False)])
    assert library.catalog.count_cues("baboon") == 1
    assert library.catalog.count_cues("balloon") == 0
    assert library.catalog.content_number() != before
    assert library.verify().clean
    library.edit_cues(video, [CueEdit(start, end, "")])
    assert texts(library)["a.mp4"] == ["lands softly"]
    assert library.verify().clean


def test_a_correction_outlives_the_recogniser_and_the_video(
    library: LibraryStore, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    video, _ = edited(library)
    cue = library.catalog.cues(video)[0]
    library.edit_cues(video, [CueEdit(cue.start, cue.end, "a purple baboon")])
    assert library.transcribe(again=True).heard == 0  # by the same recogniser
    better = TranscribedPart(3.0, "en", (_cue(0.2, "the", "purple", "balloon"), _cue(2.0, "lands", "very", "softly")))
    monkeypatch.setattr(Parrot, "hear", lambda self, path, begin=0.0, language=None: iter([better]))
    assert library.transcribe(transcriber="whisper:better").heard == 0  # not unasked
    assert library.transcribe(transcriber="whisper:better", again=True).heard == 1
    assert edited(library)[1] == [("a purple baboon", True), ("lands very softly", False)]
    assert library.verify().clean
    library.remove("a.mp4")
    library.add(talks)
    assert edited(library)[1] == [("a purple baboon", True), ("lands very softly", False)]


def test_the_first_transcript_counts_until_the_second_is_whole(
    library: LibraryStore, talks: Path, parrot: type[Parrot]
) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    parrot.suffers = {"a.mp4": MediaError("its sound makes the recogniser stop")}
    report = library.transcribe(transcriber="whisper:other", again=True)
    assert (report.heard, len(report.noted)) == (0, 1)
    assert texts(library) == HEARD
    found = transcript(library.catalog, edited(library)[0])
    assert found is not None
    assert found.transcriber == "whisper-base"
    assert track_counts(library.catalog, SPEECH).failed == 0


def test_only_what_a_machine_heard_can_be_corrected(library: LibraryStore, talks: Path) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    ids = {v.name: v.id for v in library.videos()}
    for name in ("b.mp4", "c.mp4"):
        with pytest.raises(MomentseekError, match="has no transcript by speech recognition"):
            library.edit_cues(ids[name], [CueEdit(0.5, 2.0, "other")])
    with pytest.raises(MomentseekError, match="there is no cue at 900"):
        library.edit_cues(ids["a.mp4"], [CueEdit(900.0, 901.0, "other")])
    with pytest.raises(MomentseekError, match="there is no video 99"):
        library.edit_cues(99, [])
    assert texts(library) == HEARD


def test_a_correction_is_made_wholly_or_not_at_all(
    library: LibraryStore, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    video, before = edited(library)
    with monkeypatch.context() as patch:
        patch.setattr(library.catalog, "insert_segment", _stop)
        with pytest.raises(KeyboardInterrupt):
            library.edit_cues(video, [CueEdit(0.2, 0.8, "a purple baboon")])
    assert edited(library) == (video, before)
    assert library.verify().problems == []
    library.edit_cues(video, [CueEdit(0.2, 0.8, "a purple baboon")])
    assert library.verify().problems == []


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_sound_without_a_decoder_costs_no_pictures(
    library: LibraryStore, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hear(self: Parrot, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        yield TranscribedPart(sum(len(block) for block in sound(path)) / SAMPLE_RATE, "en", ())

    monkeypatch.setattr(Parrot, "hear", hear)
    whole = (talks / "a.mp4").read_bytes()
    assert whole.count(b"mp4a") == 1
    (talks / "a.mp4").write_bytes(whole.replace(b"mp4a", b"qqqq").replace(b"esds", b"qqqs"))
    library.options = replace(library.options, transcriber="whisper-base")
    report = library.add(talks)
    assert (report.added, report.heard, report.failed) == (3, 0, [])
    assert report.noted[-1].text == (
        "its speech was not transcribed: has no sound that can be decoded; convert it, or add subtitles"
    )


def test_unknown_language_is_reported_and_the_rest_continues(
    library: LibraryStore, talks: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    film(talks / "d.mp4", RED, BLUE, audio=True)

    def hear(self: Parrot, path: Path, begin: float = 0.0, language: str | None = None) -> Iterator[TranscribedPart]:
        yield TranscribedPart(3.0, None if path.name == "a.mp4" else "en", (_cue(0.2, "pakela", "tomi"),))

    monkeypatch.setattr(Parrot, "hear", hear)
    library.options = replace(library.options, transcriber="whisper-base")
    report = library.add(talks)
    assert report.heard == 2
    assert [(noted.path.name, noted.text) for noted in report.noted] == [
        ("a.mp4", "the recogniser is not sure of its language; words may be wrong")
    ]


def test_a_model_with_a_file_missing_costs_no_pictures(
    library: LibraryStore, talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faster_whisper")
    monkeypatch.setattr(speech, "transcriber_fingerprint", transcriber_fingerprint)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    library.options = replace(library.options, transcriber=str(model))
    report = library.add(talks)
    assert report.added == 3
    (note,) = [note for note in report.notes if "not transcribed" in note]
    assert note.startswith(f"speech was not transcribed: {model / 'model.bin'} is missing; a faster-whisper model has")
    with pytest.raises(MomentseekError, match=r"model\.bin is missing"):
        library.transcribe(transcriber=f"whisper:{model}")


def test_damaged_segment_does_not_stop_transcription_and_is_named_on_correction(
    library: LibraryStore, talks: Path, film: Callable[..., Path]
) -> None:
    library.options = replace(library.options, transcriber="whisper-base")
    library.add(talks)
    video, before = edited(library)
    for row in library.catalog.segments("speech"):
        (library.paths.segments / f"{row.name}.vec").write_bytes(b"scribble")
    film(talks / "d.mp4", RED, BLUE, audio=True)
    report = library.add(talks)
    assert (report.added, report.heard) == (1, 1)
    with pytest.raises(MomentseekError, match="damaged on the disk"):
        library.edit_cues(video, [CueEdit(0.2, 0.8, "a purple baboon")])
    assert edited(library) == (video, before)
