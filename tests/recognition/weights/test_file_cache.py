import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.preprocessing import crop_square
from momentseek.recognition.encoders.registry import IMAGE_TEXT_ENCODERS, image_text_encoder, register_image_text
from momentseek.recognition.runtime import session, thread_count
from momentseek.recognition.weights.files import load_or_make


def never():
    pytest.fail("made again")


def test_computes_once_per_key(tmp_path):
    assert load_or_make("thing", "1", lambda: b"one", tmp_path) == b"one"
    assert load_or_make("thing", "2", lambda: b"two", tmp_path) == b"two"
    assert load_or_make("thing", "1", never, tmp_path) == b"one"
    assert load_or_make("other", "1", lambda: b"", tmp_path) == b""
    assert load_or_make("other", "1", never, tmp_path) == b""


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b"", lambda _: b"x" * 40]
)
def test_recomputes_damaged_files(tmp_path, damage):
    load_or_make("thing", "1", lambda: b"one", tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert load_or_make("thing", "1", lambda: b"again", tmp_path) == b"again"
    assert load_or_make("thing", "1", never, tmp_path) == b"again"


def test_works_without_a_writable_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert load_or_make("thing", "1", lambda: b"one", tmp_path / "file/folder") == b"one"


def test_threads_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(2) == 2
    for bad in ("0", "-1", "two", "1.5", "٣"):
        monkeypatch.setenv("MOMENTSEEK_THREADS", bad)
        with pytest.raises(MomentseekError, match="give a number of threads, such as 2"):
            thread_count()


def test_rejects_a_file_that_is_no_network(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "model.onnx").write_bytes(b"text")
    with pytest.raises(MomentseekError, match=r"model\.onnx: ONNX Runtime cannot load it \(.*\); get the file again"):
        session(tmp_path / "model.onnx")
    with pytest.raises(MomentseekError, match="a network: ONNX Runtime cannot load it"):
        session(b"text")


def test_the_middle_square_is_taken():
    image = np.zeros((4, 10, 3), np.uint8)
    image[:, 3:7] = 200
    np.testing.assert_array_equal(crop_square(image, 4), np.full((4, 4, 3), 200))
    np.testing.assert_array_equal(crop_square(image.transpose(1, 0, 2), 2), np.full((2, 2, 3), 200))


def test_registers_an_image_text_encoder(monkeypatch):
    monkeypatch.setattr("momentseek.recognition.encoders.registry.IMAGE_TEXT_ENCODERS", IMAGE_TEXT_ENCODERS.copy())
    register_image_text("test-own", object)
    assert image_text_encoder("test-own") is image_text_encoder("test-own")
    with pytest.raises(MomentseekError, match="already exists"):
        register_image_text("test-own", object)
    with pytest.raises(MomentseekError, match="begins like a place to load from"):
        register_image_text("hub:own", object)
    with pytest.raises(
        MomentseekError, match=r"there is no image-text encoder 'xyz'; there are things, clip, .*test-own"
    ):
        image_text_encoder("xyz")


def test_removed_encoder_error_names_the_remedy():
    for spec in ("labels", "mean:labels"):
        with pytest.raises(MomentseekError, match=r"the encoder labels is gone.*momentseek reencode --encoder things"):
            image_text_encoder(spec)
