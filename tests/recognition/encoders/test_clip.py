"""CLIP's image tower, built from 8-bit weights, on photographs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from skimage import data

from momentseek.core.errors import MissingWeightsError, MomentseekError
from momentseek.media.decode import frames
from momentseek.recognition.encoders import clip_tower
from momentseek.recognition.encoders.clip import ASSET, ClipEncoder, PlainClipEncoder, known_picture
from momentseek.recognition.encoders.clip_text import load_text_tower
from momentseek.recognition.encoders.clip_tower import Matrix, build_tower, read_weights, resize_positions
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.registry import image_text_encoder, text_encoder
from momentseek.recognition.runtime import session
from momentseek.recognition.weights.files import are_installed, verify

needs_clip = pytest.mark.skipif(not are_installed(ASSET), reason="CLIP's weights are not here")
PHOTOGRAPHS = {
    "a cat": data.chelsea,
    "a cup of coffee": data.coffee,
    "a rocket": data.rocket,
    "a woman": data.astronaut,
}


def float_weights(weights: clip_tower.Weights) -> clip_tower.Weights:
    return {
        name: (one.codes.astype(np.float32) - one.zero) * one.scale if isinstance(one, Matrix) else one
        for name, one in weights.items()
    }


@needs_clip
def test_8_bit_products_are_near_the_exact_ones() -> None:
    (file,) = ASSET.files
    weights = read_weights(verify(ASSET) / file)
    pictures = np.stack([picture()[:160, :160] for picture in PHOTOGRAPHS.values()] + [known_picture()])
    quick, exact = (
        session(build_tower(some, 160), 1).run(["vectors"], {"images": pictures})[0]
        for some in (weights, float_weights(weights))
    )
    cosines = (quick * exact).sum(axis=1) / np.linalg.norm(quick, axis=1) / np.linalg.norm(exact, axis=1)
    assert cosines.min() > 0.99


@needs_clip
def test_words_distinguish_photographs() -> None:
    encoder = image_text_encoder("clip")
    rows = encoder.encode_images([picture() for picture in PHOTOGRAPHS.values()])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    scores = encoder.encode(list(PHOTOGRAPHS)) @ rows.T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert isinstance(encoder, ClipEncoder)
    for at, text in enumerate(PHOTOGRAPHS):
        query, added = encoder.margin_query(text)
        margins = rows @ query
        assert margins[at] > np.delete(margins, at).max() + 0.05
        assert (added > 0) is (text == "a woman")


@needs_clip
def test_margin_is_the_cosine_minus_common_words() -> None:
    encoder = image_text_encoder("clip")
    assert isinstance(encoder, ClipEncoder)
    (row,) = encoder.encode_images([data.coffee()])
    vector = row[:512] / np.linalg.norm(row[:512])
    usual = np.log(np.exp(30 * (encoder._usual_words @ vector)).mean()) / 30
    (text,) = encoder.words.encode(["coffee"])
    assert float(row @ encoder.margin_query("coffee")[0]) == pytest.approx(float(vector @ text) - usual, abs=1e-4)


def test_resized_positions_keep_corners_apart() -> None:
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1).reshape(-1, 2)
    table = np.concatenate([np.full((1, 2), -1.0), grid]).astype(np.float32)
    small = resize_positions(table, 10)
    assert small.shape == (101, 2)
    assert small[0].tolist() == [-1, -1]
    centres = (np.arange(10) + 0.5) * 1.4 - 0.5
    np.testing.assert_allclose(small[1:].reshape(10, 10, 2)[2:-2, 5, 0], centres[2:-2], atol=0.1)
    assert resize_positions(table, 14) is table


def test_rejects_another_file(tmp_path: Path) -> None:
    (tmp_path / "clip.onnx").write_bytes(b"no model")
    with pytest.raises(MomentseekError, match=r"clip\.onnx: is not the CLIP model that was tested"):
        read_weights(tmp_path / "clip.onnx")


def test_rejects_a_wrong_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    if not are_installed(ASSET):
        pytest.skip("CLIP's weights are not here")
    encoder = ClipEncoder(text_encoder("minilm"), threads=1)
    monkeypatch.setattr("momentseek.recognition.encoders.clip.KNOWN_NUMBERS", (9.0, 9.0))
    with pytest.raises(MomentseekError, match="install another onnxruntime"):
        encoder.encode_images([data.coffee()])


@needs_clip
@pytest.mark.parametrize(
    "query", ["a person", "a woman", "a man", "children", "a crowd", "people", "people walking", "someone"]
)
def test_people_are_found_on_real_videos(people: tuple[ClipEncoder, Vectors, int], query: str) -> None:
    encoder, rows, count = people
    scores = rows @ encoder.encode([query])[0]
    assert scores.argmax() < count
    assert scores[:count].mean() > scores[count:].mean()


@pytest.fixture(scope="module")
def people(data: Path) -> tuple[ClipEncoder, Vectors, int]:
    """Rows of pictures with people, then of animals, things and places, and the number of the first."""
    shown = ["r005", "r035", "r071", "r090", "r096", "r099", "r111", "r125"]
    absent = ["r033", "r037", "r039", "r040", "r048", "r072", "r091", "r116"]
    encoder = image_text_encoder("clip")
    assert isinstance(encoder, ClipEncoder)
    folder = data / "real-videos" / "videos"
    videos = [path for name in (*shown, *absent) for path in folder.glob(f"{name}.*")]
    if len(videos) < len(shown) + len(absent):
        pytest.skip("no real videos here")
    pictures = [list(frames(path, 0.5, short_side=160, end=6.0))[-1].pixels for path in videos]
    return encoder, encoder.encode_images(pictures), len(shown)


@needs_clip
def test_published_tower() -> None:
    """512 columns of 224 pixels, near the exact products of its weights, and no text without the text tower."""
    encoder = PlainClipEncoder()
    square = data.chelsea()[:224, :224]
    (row,) = encoder.encode_images([square])
    assert row.shape == (512,)
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)
    (file,) = ASSET.files
    exact = session(build_tower(float_weights(read_weights(verify(ASSET) / file)), 224))
    (wanted,) = exact.run(["vectors"], {"images": square[None]})[0]
    assert row @ wanted / np.linalg.norm(wanted) > 0.99
    assert encoder.encode_images([]).shape == (0, 512)
    if load_text_tower() is None:
        with pytest.raises(MissingWeightsError, match="momentseek models get clip-b16-text"):
            encoder.encode(["a dog"])
