"""A real recogniser in a separate process transcribes a synthetic voice; a failure costs one file."""

from __future__ import annotations

import os
import signal
import wave
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.recognition.speech.models import transcriber_fingerprint
from momentseek.recognition.speech.transcribe import TranscriberProcess

pytest.importorskip("faster_whisper")
pytest.importorskip("espeakng_loader")


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from momentseek.benchmarks.demo.voice import VOICE_RATE, speak

    path = tmp_path_factory.mktemp("voice") / "voice.wav"
    silence = np.zeros(2 * VOICE_RATE, "<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(VOICE_RATE)
        file.writeframes(
            np.concatenate([silence, speak("The yellow train leaves the station at seven.").samples]).tobytes()
        )
    return path


@pytest.mark.slow
def test_transcribes_after_a_failed_file(spoken: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF" + bytes(200))
    with TranscriberProcess("whisper-base") as process:
        with pytest.raises(MediaError, match=r"broken\.wav: ") as refused:
            list(process.hear(broken))
        parts = list(process.hear(spoken))
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        with pytest.raises(MediaError) as again:
            list(process.hear(broken))
        assert str(again.value) == str(refused.value)  # a new process, with the same answer
    words = [word for cue in parts[0].cues for word in cue.words]
    text = "".join(word.text for word in words).lower()
    assert parts[0].language == "en"
    assert all(word in text for word in ("yellow", "train", "station"))
    assert 1.7 < words[0].start < 2.4
    assert all(word.start <= word.end for word in words)


def test_rejects_unknown_transcriber(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no transcriber 'parrot'"):
        transcriber_fingerprint("parrot")
    with pytest.raises(MomentseekError, match=r"config\.json is missing"):
        transcriber_fingerprint(f"whisper:{tmp_path}")


def test_rejects_damaged_model(tmp_path: Path, spoken: Path) -> None:
    for name in ("config.json", "model.bin", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    with TranscriberProcess(f"whisper:{tmp_path}") as process, pytest.raises(MomentseekError, match="cannot be loaded"):
        list(process.hear(spoken))
