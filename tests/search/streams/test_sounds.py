"""A detector of sounds is registered, hears real samples of a film, and a search finds what it heard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from grey import Grey

import momentseek as ms
from momentseek.core.errors import MomentseekError
from momentseek.media.decode import SAMPLE_RATE, Samples
from momentseek.recognition.encoders import registry
from momentseek.recognition.sounds.detectors import SOUND_DETECTORS, SoundDetector, SoundEvent, register_sounds


class Loudness:
    """Calls what is loud applause, and a high tone a smoke alarm: no model, but real samples."""

    def __init__(self, fingerprint: str = "loud-1") -> None:
        self.name, self.fingerprint = "loudness", fingerprint
        self.films = 0

    def detect(self, blocks: Iterable[Samples]) -> Iterator[SoundEvent]:
        self.films += 1
        samples = np.concatenate(list(blocks))
        for at in range(0, len(samples) - SAMPLE_RATE + 1, SAMPLE_RATE):
            second = samples[at : at + SAMPLE_RATE]
            if np.sqrt((second**2).mean()) > 0.1:
                crossings = (np.diff(np.sign(second)) != 0).sum()
                label = "smoke alarm beeping" if crossings > 4000 else "applause"
                yield SoundEvent(at / SAMPLE_RATE, at / SAMPLE_RATE + 1, label, 0.9)


def film(path: Path, tones: list[float], seconds: float = 2.0) -> None:
    """A grey film with a tone of each frequency (0 for silence) for so long."""
    times = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    wave = np.concatenate([0.5 * np.sin(2 * np.pi * tone * times) for tone in tones]).astype(np.float32)
    with av.open(str(path), "w") as container:
        picture, sound = container.add_stream("mpeg4", rate=5), container.add_stream("pcm_s16le", rate=SAMPLE_RATE)
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        sound.layout = "mono"
        for _ in range(int(5 * seconds * len(tones))):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 128, np.uint8), format="rgb24")
            container.mux(picture.encode(frame))
        container.mux(picture.encode())
        for at in range(0, len(wave), 1600):
            block = (wave[None, at : at + 1600] * 32767).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
            frame.rate, frame.pts = SAMPLE_RATE, at
            container.mux(sound.encode(frame))
        container.mux(sound.encode())


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    registry.IMAGE_TEXT_ENCODERS["grey"] = Grey
    (tmp_path / "films").mkdir()
    film(tmp_path / "films/hall.mkv", [0, 220, 0, 0])
    film(tmp_path / "films/kitchen.mkv", [0, 0, 0, 3000])
    film(tmp_path / "films/quiet.mkv", [0, 0])
    with ms.Library.open(tmp_path / "library", create=True, encoder="grey") as opened:
        opened.add(tmp_path / "films")
        yield opened


@pytest.fixture
def detector(monkeypatch):
    monkeypatch.setattr(SOUND_DETECTORS, "_things", dict(SOUND_DETECTORS))
    loaded = Loudness()
    register_sounds("loudness", lambda: loaded)
    return loaded


def found(library, query, **options):
    hits = library.search(query, k=3, all=True, streams=("speech",), **options)
    return [(hit.name, round(hit.start), round(hit.end), hit.level) for hit in hits if "sound" in hit.streams]


def test_a_registered_detector_is_heard_and_found(library, detector):
    assert isinstance(detector, SoundDetector)
    assert found(library, "applause") == []
    before = library.store.catalog.content_number()
    report = library.listen(detector="loudness")
    assert (report.listened, report.sounds, report.noted) == (3, 4, [])
    assert library.store.catalog.content_number() != before
    assert found(library, "applause")[0][0] == "hall.mkv"
    (first, *_) = found(library, "a smoke alarm beeps")
    assert first[0] == "kitchen.mkv"
    assert 6 <= first[1] < first[2] <= 8
    assert first[3] == "strong"
    assert found(library, "a smoke signal") == []  # one word of two is too little
    assert found(library, "applause in:kitchen*") == []
    assert library.search("applause", k=3, all=True, streams=("vision",))[0].streams.keys() == {"vision"}


def test_sounds_are_detected_again_only_after_the_detector_changes(library, detector, tmp_path):
    library.listen("hall*", detector="loudness")
    assert detector.films == 1
    assert library.listen(detector="loudness").listened == 2
    assert library.listen(detector="loudness").listened == 0
    detector.fingerprint = "loud-2"
    again = library.listen(detector="loudness", progress=lambda step: None)
    assert (again.listened, again.sounds) == (3, 4)
    library.remove(["hall*"])
    assert library.store.catalog.rows("SELECT count(*) FROM cues")[0][0] == 2
    assert len(library.store.catalog.rows("SELECT * FROM tracks")) == 2


def test_failed_transcription_is_reported_and_the_rest_continues(library, detector, tmp_path):
    (tmp_path / "films/hall.mkv").write_bytes(b"no film")
    report = library.listen(detector="loudness")
    assert report.listened == 2
    (note,) = report.noted
    assert note.path.name == "hall.mkv"
    assert "its sounds were not detected" in note.text


@pytest.mark.parametrize(
    "event", [SoundEvent(2, 1, "rain"), SoundEvent(0, 1, " "), SoundEvent(0, float("nan"), "rain")]
)
def test_impossible_events_are_refused(library, detector, event):
    detector.detect = lambda blocks: [event]
    with pytest.raises(MomentseekError, match="the sound detector loudness gave SoundEvent"):
        library.listen(detector="loudness")
    assert library.store.catalog.rows("SELECT count(*) FROM tracks")[0][0] == 0


@pytest.mark.parametrize(("score", "level"), [(0.8, "strong"), (0.6, "fair"), (0.3, "weak")])
def test_a_hit_is_as_sure_as_the_detector(library, detector, score, level):
    detector.detect = lambda blocks: [SoundEvent(0, 1, "dog barking", score)]
    library.listen(detector="loudness")
    assert {found for *_, found in found(library, "a dog barks")} == {level}
    (first, *_) = library.search("a dog barks", k=1, all=True, streams=("speech",))
    assert [cue.text for cue in first.heard] == ["dog barking"]


def test_a_dog_to_be_seen_is_not_asked_of_the_sound(library, detector):
    detector.detect = lambda blocks: [SoundEvent(0, 1, "dog barking", 0.9)]
    library.listen(detector="loudness")
    assert found(library, "a dog") == []
    assert found(library, "a dog running on the beach") == []
    assert {level for *_, level in found(library, "the sound of a dog")} == {"strong"}


def test_an_unknown_detector_is_named(library, detector):
    with pytest.raises(MomentseekError, match="there is no sound detector 'loudnes'; did you mean 'loudness'"):
        library.listen(detector="loudnes")
