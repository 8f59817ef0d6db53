"""``sounds run`` and ``sounds show``, with a fake YAMNet that stops midway."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MediaError
from momentseek.library.store import LibraryStore
from momentseek.library.tracks import sounds
from momentseek.recognition.encoders import registry
from momentseek.recognition.sounds.detectors import SoundEvent
from momentseek.recognition.sounds.yamnet import HeardPart


class Ears:
    """Detects a dog in each second; the process ends by itself at ``stop``."""

    stop: float | None = None
    begun: list[float] = []  # noqa: RUF012

    def __init__(self, threads: int = 1) -> None:
        pass

    def hear(self, path: Path, begin: float = 0.0) -> Iterator[HeardPart]:
        self.begun.append(begin)
        for second in range(round(begin), 3):
            if self.stop is not None and second >= self.stop:
                raise KeyboardInterrupt
            if path.stem == "zoo":
                raise MediaError(f"{path}: its sound cannot be processed")
            yield HeardPart(second + 1.0, (SoundEvent(second, second + 1.0, "dog barking", 0.9 - second / 10),))

    def close(self) -> None:
        pass


@pytest.fixture
def library(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(Path(__file__).parent.parent / "library" / "light.py"))["install"]()
    monkeypatch.setattr(sounds, "YamnetProcess", Ears)
    monkeypatch.setattr(sounds, "yamnet_fingerprint", lambda: "ears")
    monkeypatch.setattr(Ears, "begun", [])
    folder = tmp_path / "films"
    folder.mkdir()
    for name, colour, audio in (
        ("park", (200, 20, 20), True),
        ("zoo", (20, 20, 200), True),
        ("mute", (0, 9, 9), False),
    ):
        make_video(folder / f"{name}.mp4", [(3.0, colour)], rate=5, size=(64, 48), audio=audio)
    with LibraryStore.open(tmp_path / "library", create=True, encoder="colours") as opened:
        opened.add(folder)
    return tmp_path / "library"


def test_detects_finds_and_shows_sounds(momentseek: Callable[..., Any], library: Path) -> None:
    place = ("--library", library)
    unheard = momentseek("sounds", "show", "park.mp4", *place)
    assert (unheard.returncode, "sound detection has not been run on it" in unheard.stderr) == (2, True)
    assert "\nsounds" not in momentseek("status", *place).stdout
    done = momentseek("sounds", "run", *place)
    assert done.returncode == 0
    assert "1 sound in 1 video (00:00:03" in done.stderr
    assert "1 could not be processed" in done.stderr
    status = momentseek("status", *place).stdout
    assert "sounds    1 video (00:00:03), 1 sound, 1 failed" in status
    shown = momentseek("sounds", "show", "park.mp4", *place).stdout
    assert shown == "1\n00:00:00,000 --> 00:00:03,000\ndog barking\n"
    whole = json.loads(momentseek("sounds", "show", "park.mp4", "--format", "json", *place).stdout)
    assert whole == {
        "heard_by": "yamnet", "sounds": [{"start": 0.0, "end": 3.0, "label": "dog barking", "score": 0.9}]
    }  # fmt: skip
    failed = momentseek("sounds", "show", "zoo.mp4", *place)
    assert (failed.returncode, "sounds run zoo.mp4 --again" in failed.stderr) == (2, True)
    found = momentseek("search", "a dog barks", "-k", "1", *place).stdout
    assert "dog barking" in found
    assert "heard #1" in found
    (hit,) = json.loads(momentseek("search", "a dog barks", "-k", "1", "--json", *place).stdout)["hits"]
    assert hit["heard"][0]["label"] == "dog barking"


def test_stopped_run_is_resumed(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LibraryStore.open(library, create=False) as opened:
        monkeypatch.setattr(Ears, "stop", 2.0)
        with pytest.raises(KeyboardInterrupt):
            opened.listen("park*")
        monkeypatch.setattr(Ears, "stop", None)
        assert opened.listen("park*").sounds == 1
        assert Ears.begun == [0.0, 2.0]
        assert opened.listen("park*").listened == 0


def test_missing_weights_are_one_sentence(
    momentseek: Callable[..., Any], library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "none"))
    for words in (["sounds", "run"], ["add", str(tmp_path / "films"), "--sounds"]):
        refused = momentseek(*words, "--library", library)
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) == 1
        assert "models get yamnet" in refused.stderr or "ai-edge-litert" in refused.stderr
