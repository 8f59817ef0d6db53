"""YAMNet on recordings, as a whole and in parts, if its weights and its runtime are installed."""

from __future__ import annotations

import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

import av
import numpy as np
import pytest
from grey import Grey

import momentseek as ms
from momentseek.core.errors import MediaError, MomentseekError
from momentseek.media.decode import SAMPLE_RATE, sound
from momentseek.recognition import downloads
from momentseek.recognition.encoders import registry
from momentseek.recognition.sounds import yamnet
from momentseek.recognition.sounds.detectors import SOUND_DETECTORS, SoundDetector, make_events
from momentseek.recognition.sounds.kinds import sound_kinds
from momentseek.recognition.sounds.yamnet import Yamnet, YamnetProcess, class_names
from momentseek.recognition.weights.catalog import HUB_MODELS

RECORDINGS = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared")) / "data/sounds"
WEIGHTS = RECORDINGS / "yamnet.tflite"
needs_weights = pytest.mark.skipif(
    not WEIGHTS.is_file() or find_spec("ai_edge_litert") is None, reason="YAMNet's weights or ai-edge-litert are absent"
)


@pytest.fixture(scope="module")
def model():
    return Yamnet(WEIGHTS)


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """YAMNet as ``models get`` leaves it."""
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    downloads.fetch_model(HUB_MODELS["yamnet"], str(RECORDINGS))


@needs_weights
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("baby_975ms", "baby crying"),
        ("dog_975ms", "dog barking"),
        ("jingle_975ms", "tambourine jingling"),
        ("meow_16k", "cat meowing"),
    ],
)
def test_recognises_recordings(model, name, label):
    assert isinstance(model, SoundDetector)
    events = model.detect(sound(RECORDINGS / f"{name}.wav"))
    surest = max(events, key=lambda event: event.score)
    assert surest.label == label
    assert surest.score > 0.8
    assert len({event.label for event in events}) == len(events)


@needs_weights
def test_bark_is_located_and_silence_has_none(model):
    (dog,) = [np.concatenate(list(sound(RECORDINGS / "dog_975ms.wav")))]
    silence = np.zeros(4 * SAMPLE_RATE, np.float32)
    (event,) = [e for e in model.detect([silence, dog, silence]) if e.score > 0.5]
    assert event.label == "dog barking"
    assert 3.4 < event.start < 4.6
    assert 4.6 < event.end < 5.8
    assert model.detect([silence]) == []
    assert model.detect([]) == []


@needs_weights
def test_parts_and_resumed_runs_equal_one_run(model, monkeypatch):
    pieces = [np.concatenate(list(sound(RECORDINGS / f"{name}.wav"))) for name in ("meow_16k", "dog_975ms")]
    samples = np.concatenate([*pieces, np.zeros(3 * SAMPLE_RATE, np.float32)] * 3)
    whole = model.detect([samples])
    assert {"cat meowing", "dog barking"} <= {event.label for event in whole}
    monkeypatch.setattr(yamnet, "PART_WINDOWS", 7)
    parts = list(model.hear(np.array_split(samples, 50)))
    assert len(parts) > 8
    assert make_events(e for part in parts for e in part.stretches) == whole
    again = [*parts[:3], *model.hear([samples], begin=parts[2].done)]
    assert make_events(e for part in again for e in part.stretches) == whole


@needs_weights
def test_weights_file_has_all_class_names(tmp_path):
    names = class_names(WEIGHTS)
    assert len(names) == 521
    assert {name for kind in sound_kinds().values() for name in kind.classes} <= set(names)
    cut = tmp_path / "cut.tflite"
    cut.write_bytes(WEIGHTS.read_bytes()[:-1000])
    with pytest.raises(MomentseekError, match="has no names of classes in it; get it again"):
        class_names(cut)
    with zipfile.ZipFile(tmp_path / "names.tflite", "w") as archive:
        archive.writestr("yamnet_label_list.txt", "\n".join(names))
    with pytest.raises(MomentseekError, match="cannot be opened"):
        Yamnet(tmp_path / "names.tflite")


@needs_weights
def test_process_resumes_a_file(fetched, tmp_path):
    with YamnetProcess() as process:
        (part,) = process.hear(RECORDINGS / "meow_16k.wav")
        assert part.done == pytest.approx(6.731, abs=0.01)
        assert max(part.stretches, key=lambda event: event.score).label == "cat meowing"
        (rest,) = process.hear(RECORDINGS / "meow_16k.wav", 3.9)
        assert min(event.start for event in rest.stretches) >= 3.9
        (tmp_path / "no.wav").write_bytes(b"nothing")
        with pytest.raises(MediaError):
            list(process.hear(tmp_path / "no.wav"))


@needs_weights
def test_library_detects_and_finds_sounds(fetched, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    registry.IMAGE_TEXT_ENCODERS["grey"] = Grey
    monkeypatch.setenv("MOMENTSEEK_SOUNDS", "on")
    film(tmp_path / "films/park.mkv", RECORDINGS / "dog_975ms.wav")
    film(tmp_path / "films/home.mkv", RECORDINGS / "meow_16k.wav")
    with ms.Library.open(tmp_path / "library", create=True, encoder="grey") as library:
        report = library.add(tmp_path / "films")
        assert report.listened == 2
        assert report.sounds >= 2
        (bark,) = [hit for hit in library.search("a dog barks") if "sound" in hit.streams]
        assert (bark.rank, bark.name, bark.level, bark.heard[0].text) == (1, "park.mkv", "strong", "dog barking")
        (meow, *_) = library.search("the kitten mews")
        assert (meow.name, "sound" in meow.streams) == ("home.mkv", True)
        assert library.status().sounds == report.sounds
        assert library.add(tmp_path / "films").listened == 0
        assert library.listen().listened == 0


def test_default_only_if_fully_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "none"))
    monkeypatch.delenv("MOMENTSEEK_SOUNDS")
    assert yamnet.default_sound_detector() is None
    monkeypatch.setattr(yamnet, "is_installed", lambda: True)
    assert yamnet.default_sound_detector() == "yamnet"
    monkeypatch.setenv("MOMENTSEEK_SOUNDS", "off")
    assert yamnet.default_sound_detector() is None
    monkeypatch.setenv("MOMENTSEEK_SOUNDS", "mine")
    assert yamnet.default_sound_detector() == "mine"
    assert "yamnet" in SOUND_DETECTORS
    with pytest.raises(MomentseekError, match=r"momentseek models get yamnet|ai-edge-litert"):
        Yamnet()


def film(path: Path, recording: Path) -> None:
    """A grey film with a recording as its sound."""
    path.parent.mkdir(exist_ok=True)
    samples = np.concatenate([*sound(recording), np.zeros(SAMPLE_RATE, np.float32)])
    with av.open(str(path), "w") as container:
        picture, track = container.add_stream("mpeg4", rate=5), container.add_stream("pcm_s16le", rate=SAMPLE_RATE)
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        track.layout = "mono"
        for _ in range(5 * len(samples) // SAMPLE_RATE):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 128, np.uint8), format="rgb24")
            container.mux(picture.encode(frame))
        container.mux(picture.encode())
        for at in range(0, len(samples), 1600):
            block = (samples[None, at : at + 1600] * 32767).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
            frame.rate, frame.pts = SAMPLE_RATE, at
            container.mux(track.encode(frame))
        container.mux(track.encode())
