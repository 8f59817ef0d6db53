import subprocess
import sys

import numpy as np
import pytest
from tests.recognition.encoders.fakes import Words, needs_labels

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.preprocessing import crop_square
from momentseek.recognition.encoders.protocol import ImageTextEncoder
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.encoders.text_cache import unit_rows
from momentseek.recognition.encoders.things import IMAGE_SIDE_PIXELS, ThingEncoder, label_names, mixture, sentences_for

data = pytest.importorskip("skimage.data")


@pytest.fixture(scope="module")
def encoder():
    return image_text_encoder("things")


def top(image, count=3):
    logits = image_text_encoder("things")._network.run(
        ["logits"], {"images": crop_square(image, IMAGE_SIDE_PIXELS)[None]}
    )[0][0]
    return {label_names()[at] for at in np.argsort(-logits)[:count]}


@needs_labels
def test_the_classifier_knows_these_photographs():
    assert {"Egyptian cat", "tabby cat", "tiger cat"} == top(data.chelsea())
    assert "espresso coffee" in top(data.coffee(), 1)
    assert "missile" in top(data.rocket())
    datasets = pytest.importorskip("sklearn.datasets")
    assert "palace" in top(datasets.load_sample_image("china.jpg"), 1)


@needs_labels
def test_captions_find_their_photographs(encoder):
    photographs = {"chelsea": data.chelsea(), "coffee": data.coffee(), "rocket": data.rocket()}
    rows = encoder.encode_images(list(photographs.values()))
    captions = {"a cat looking at the camera": 0, "someone drinks coffee": 1, "a rocket launch": 2, "a kitten": 0}
    scores = encoder.encode(list(captions)) @ rows.T
    assert scores.argmax(axis=1).tolist() == list(captions.values())
    assert scores.max(axis=1).min() > 0.2


@needs_labels
def test_rows_are_units_and_do_not_depend_on_their_neighbours(encoder):
    images = [data.chelsea(), data.coffee()[:, :50], np.zeros((1, 1, 3), np.uint8), np.full((9, 300, 3), 255, np.uint8)]
    rows = encoder.encode_images(images)
    assert isinstance(encoder, ImageTextEncoder)
    assert rows.shape == (4, encoder.dim)
    assert unit_rows(rows).all()
    for image, row in zip(images, rows, strict=True):
        np.testing.assert_allclose(encoder.encode_images([image])[0], row, atol=1e-5)
    assert encoder.encode_images([]).shape == (0, encoder.dim)
    assert encoder.encode([]).shape == (0, encoder.dim)
    assert unit_rows(encoder.encode(["", "a cat"])).all()


@needs_labels
@pytest.mark.parametrize("image", [np.zeros((4, 4)), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_rejects_non_images(encoder, image):
    with pytest.raises(MomentseekError, match="encoders take upright RGB"):
        encoder.encode_images([image])


@needs_labels
def test_texts_need_no_image_network():
    code = (
        "import sys; from momentseek.recognition.encoders.registry import image_text_encoder as e;"
        "found = e('things'); found.encode(['a cat']);"
        "print('_network' in vars(found), 'PIL' in sys.modules)"
    )
    image_text_encoder("things").encode(["a cat"])  # the labels are encoded and kept
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"


@needs_labels
def test_damaged_cache_is_recomputed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = ThingEncoder(Words(), "print").encode_images([data.coffee()])
    made = list(tmp_path.glob("momentseek/made/label-*"))
    assert len(made) == 2
    for path in made:
        path.write_bytes(path.read_bytes()[:-7] + b"damaged")
    again, words = ThingEncoder(Words(), "print"), Words()
    np.testing.assert_array_equal(again.encode_images([data.coffee()]), first)
    np.testing.assert_array_equal(ThingEncoder(words, "print").encode_images([data.coffee()]), first)
    assert words.seen == []  # kept once more


def test_there_are_a_thousand_different_labels():
    names = label_names()
    assert len(set(names)) == len(names) == 1000
    assert all(name == name.strip() and "," not in name for name in names)
    places = {281: "tabby cat", 207: "golden retriever dog", 417: "balloon", 517: "construction crane", 968: "cup"}
    assert {at: names[at] for at in places} == places
    assert sentences_for(["orange fruit"]) == ["a photo of an orange fruit"]


def test_mixture_of_all_labels_is_the_softmax_mean():
    random = np.random.default_rng(0)
    logits, rows = random.normal(size=(3, 7)).astype(np.float32), random.normal(size=(7, 4)).astype(np.float32)
    weight = np.exp(logits / 2) / np.exp(logits / 2).sum(axis=1, keepdims=True)
    mean = weight @ rows
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(mixture(logits, rows, top=7, temperature=2), expected, rtol=1e-5)
    only = mixture(logits, rows, top=1, temperature=3)
    best = rows[logits.argmax(axis=1)]
    np.testing.assert_allclose(only, best / np.linalg.norm(best, axis=1, keepdims=True), rtol=1e-5)
