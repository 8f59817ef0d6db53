"""Small models in their published form are run after the download."""

import struct

import pytest
from tests.recognition.encoders.graphs import siglip2_files, siglip2_text, siglip2_vision
from tests.recognition.encoders.small import clip_tokenizer

from momentseek.core.errors import MomentseekError
from momentseek.recognition import downloads as trial
from momentseek.recognition.downloads import try_model
from momentseek.recognition.weights.catalog import HubFile, HubModel

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def model(files, dim=6, kind="image-text"):
    sizes = {path: HubFile(len(data)) for path, data in files.items()}
    return HubModel("tiny", "somebody/tiny", "abc", sizes, dim, "MIT", "tests", kind)


def tried(folder, files, **options):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return try_model(model(files, **options), folder)


def test_good_model_has_no_warnings(tmp_path):
    assert tried(tmp_path, siglip2_files()) == []


def test_warns_about_a_model_that_confuses_colours(tmp_path):
    (problem,) = tried(tmp_path, siglip2_files(**{"onnx/vision_model.onnx": siglip2_vision(swaps=True)}))
    assert problem.startswith("tiny takes a red picture for a blue one")


def test_warns_about_vectors_that_depend_on_their_batch(tmp_path):
    """A graph quantises by batch, but its name does not show it."""
    (problem,) = tried(tmp_path, siglip2_files(**{"onnx/vision_model.onnx": siglip2_vision(rounds=True)}))
    assert "another vector alone than together with others" in problem


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"onnx/vision_model.onnx": b"no graph"}, r"vision_model\.onnx: ONNX Runtime cannot load it"),
        ({"config.json": b'{"model_type": "bert"}'}, "of type 'bert'"),
        (
            {"onnx/vision_model.onnx": siglip2_vision(dim=4), "onnx/text_model_fp16.onnx": siglip2_text(dim=4)},
            "its vectors have 4 numbers, tiny has 6; these are files of another model",
        ),
        ({"tokenizer.json": clip_tokenizer().to_str().encode()}, r"text_model_fp16\.onnx: ONNX Runtime stopped"),
        ({"onnx/text_model_fp16.onnx": siglip2_text(dim=4)}, "images have 6 numbers and texts 4"),
    ],
)
def test_unusable_model_is_an_error(tmp_path, changes, message):
    with pytest.raises(MomentseekError, match=message):
        tried(tmp_path, siglip2_files(**changes))


def test_missing_runtime_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "find_spec", lambda name: None)
    (problem,) = tried(tmp_path, siglip2_files())
    assert "was not tried" in problem


SPEECH = {
    "model.bin": struct.pack("<IH", 6, 12) + b"WhisperSpec\0" + bytes(50),
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "vocabulary.txt": b"a\n",
}


def test_rejects_non_ctranslate2_whisper(tmp_path):
    assert tried(tmp_path, SPEECH, dim=None, kind="speech") == []
    with pytest.raises(MomentseekError, match=r"model\.bin: is no Whisper model in CTranslate2's form"):
        tried(tmp_path, {**SPEECH, "model.bin": b"PK\3\4"}, dim=None, kind="speech")
    with pytest.raises(MomentseekError, match=r"config\.json: is not JSON"):
        tried(tmp_path, {**SPEECH, "config.json": b"<html>"}, dim=None, kind="speech")
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "vocabulary.txt").unlink()
    with pytest.raises(MomentseekError, match=r"vocabulary\.txt: is missing; get it with: momentseek models get tiny"):
        try_model(model(SPEECH, None, "speech"), tmp_path)
