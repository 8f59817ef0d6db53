import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.registry import TEXT_ENCODERS, register, text_encoder


def test_registered_encoder_is_loaded_once(monkeypatch):
    monkeypatch.setattr("momentseek.recognition.encoders.registry.TEXT_ENCODERS", TEXT_ENCODERS.copy())
    register("test-words", Words)
    assert text_encoder("test-words") is text_encoder("test-words")
    with pytest.raises(MomentseekError, match="already exists"):
        register("test-words", Words)


def test_unknown_name_lists_known_ones():
    with pytest.raises(MomentseekError, match="there is no text encoder 'xyz'; there are minilm"):
        text_encoder("xyz")


def test_vectors_from_a_file(tmp_path):
    np.savez(tmp_path / "mine.npz", texts=["a", "b"], vectors=np.array([[3, 4], [0, 1]]))
    encoder = text_encoder(f"file:{tmp_path / 'mine.npz'}")
    assert (encoder.name, encoder.dim) == ("mine.npz", 2)
    np.testing.assert_allclose(encoder.encode(["b", "a"]), [[0, 1], [0.6, 0.8]], rtol=1e-6)
    with pytest.raises(MomentseekError, match="has no vector for 'c'; encode every text"):
        encoder.encode(["a", "c"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"texts": ["a"]}, "expected an .npz file with the arrays"),
        ({"texts": ["a"], "vectors": np.zeros((2, 3))}, "expected n strings and n rows"),
        ({"texts": [1], "vectors": np.zeros((1, 3))}, "expected n strings and n rows"),
        ({"texts": ["a"], "vectors": np.zeros((1, 3))}, "a vector is zero or not finite"),
        ({"texts": ["a"], "vectors": np.array([["x"]])}, "expected numbers"),
        ({"texts": np.array(["a"], dtype=object), "vectors": np.ones((1, 3))}, "expected an .npz file"),
    ],
)
def test_unusable_vector_files(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(MomentseekError, match=message):
        text_encoder(f"file:{tmp_path / 'bad.npz'}")


def test_missing_and_wrong_files(tmp_path):
    with pytest.raises(MomentseekError, match="cannot be read"):
        text_encoder(f"file:{tmp_path / 'absent.npz'}")
    for content in (b"", b"text", b"PK\x03\x04 cut off"):
        (tmp_path / "odd.npz").write_bytes(content)
        with pytest.raises(MomentseekError):
            text_encoder(f"file:{tmp_path / 'odd.npz'}")
