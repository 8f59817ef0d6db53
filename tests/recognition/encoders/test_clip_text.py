"""CLIP's text side: with and without the word table, and with a text tower."""

import numpy as np
import pytest
from tests.recognition.encoders.graphs import write_model
from tests.recognition.encoders.onnx_graph import Graph

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders import clip_text
from momentseek.recognition.encoders.clip_text import (
    DIM,
    SENTENCE_SHARE,
    TABLE,
    TOWER,
    ClipWords,
    ClipWordTable,
    centre_images,
    fitted_maps,
)
from momentseek.recognition.encoders.dual_encoder import load_dual_encoder
from momentseek.recognition.encoders.minilm import ASSET, load_minilm
from momentseek.recognition.encoders.text_cache import unit_rows
from momentseek.recognition.encoders.things import label_names, sentences_for
from momentseek.recognition.weights.files import are_installed, hashes, sha256
from momentseek.recognition.weights.hub import write_lock

pytestmark = pytest.mark.skipif(not are_installed(ASSET), reason="MiniLM is not on this machine")
NAMES = "dog", "dogs", "hot dog", "man", "golden retriever", "door", "knife"


@pytest.fixture(scope="module")
def sentences():
    return load_minilm()


@pytest.fixture(scope="module")
def small(sentences):
    rows = np.random.default_rng(1).normal(size=(len(NAMES), DIM))
    return ClipWords(
        sentences, lambda: ClipWordTable(NAMES, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16))
    )


@pytest.fixture(scope="module")
def full(sentences):
    if not are_installed(TABLE):
        pytest.skip("the table of words is not on this machine")
    return ClipWords(sentences)


def test_names_precede_words_and_forms_are_found(small):
    reading = small.read("The man eats two HOT dogs with knives")
    assert [(word.text, word.source, word.entry) for word in reading.words] == [
        ("the", "ignored", ""),
        ("man", "table", "man"),
        ("eats", "bridge", ""),
        ("two", "bridge", ""),
        ("hot dogs", "table", "hot dog"),
        ("with", "ignored", ""),
        ("knives", "table", "knife"),
    ]
    assert reading.by("bridge") == ("eats", "two")


def test_vector_is_the_mean_of_words_plus_part_of_the_sentence(small):
    man, dog, both = small.encode(["man", "the dog", "a man and his dog"])
    expected = (man + dog) / np.linalg.norm(man + dog) + SENTENCE_SHARE * small.bridge(["a man and his dog"])[0]
    np.testing.assert_allclose(both, expected / np.linalg.norm(expected), atol=1e-5)
    rows = small.encode(["", "the", "a man runs", "qxzvw"])
    assert rows.shape == (4, DIM)
    assert unit_rows(rows).all()


def test_batch_equals_single_texts(small):
    texts = ["a paraglider", "man", "a wedding at night"]
    np.testing.assert_allclose(small.encode(texts), np.concatenate([small.encode([t]) for t in texts]), atol=1e-5)


def test_without_the_table_every_word_uses_the_bridge(sentences):
    words = ClipWords(sentences, lambda: None)
    assert not words.has_table
    assert not words.read("a dog").has_table
    assert words.read("a dog").by("bridge") == ("dog",)
    dog, puppy, car, street = words.encode(["a dog", "a puppy", "a car", "street"])
    assert dog @ puppy > 0.5 > car @ dog
    assert car @ street > puppy @ street


def test_images_are_stored_without_the_mean_picture():
    usual = fitted_maps().image_mean
    rows = np.stack([3 * usual + np.eye(DIM)[0], usual - 2 * np.eye(DIM)[1]]).astype(np.float32)
    centred = centre_images(rows)
    assert unit_rows(centred).all()
    assert centred[0, 0] > 0.5
    assert centred[1, 1] < -0.5


def text_graph(dim=DIM):
    """The largest numbers of random vectors of the tokens, which padding with a mark does not change."""
    graph = Graph("text")
    ids = graph.input("input_ids", "int64", ["n", "t"])
    table = np.random.default_rng(3).normal(size=(400, dim)).astype(np.float32)
    rows = graph.add("Gather", graph.constant("table", table), ids)
    graph.add("ReduceMax", rows, axes=[1], keepdims=0, output="text_embeds")
    graph.output("text_embeds", "float32", ["n", dim])
    return graph.model()


@pytest.fixture
def tower(tmp_path, monkeypatch):
    """CLIP's text tower as it is after `models get`, but tiny."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path))
    files = {"onnx/text_model.onnx": text_graph(), "config.json": b'{"model_type": "clip"}'}
    folder = write_model(tmp_path / TOWER, **files)
    found = hashes([folder / "onnx/text_model.onnx", folder / "tokenizer.json"])
    written = {str(path.relative_to(folder)): digest for path, digest in found.items()}
    write_lock(TOWER, "here", written)
    return folder


def test_uses_the_text_tower_if_installed(sentences, tower):
    words = ClipWords(sentences, lambda: None)
    texts = ["a man", "two dogs run"]
    rows = words.encode(texts)
    whole = load_dual_encoder(tower)
    mean = whole.encode(sentences_for(label_names())).mean(axis=0)
    expected = whole.encode(texts) - mean
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-4)
    assert words.read("ein Mann").tower == TOWER
    assert words.knows("ein Mann")
    assert words.read("ein Mann").by("unknown") == ()
    assert words.fingerprint != ClipWords(sentences, lambda: None, lambda: None).fingerprint


def test_rejects_damaged_or_wrong_text_tower(sentences, tower):
    (tower / "onnx/text_model.onnx").write_bytes(text_graph() + b" ")
    with pytest.raises(MomentseekError, match=r"text_model\.onnx"):
        ClipWords(sentences).encode(["a man"])
    (tower / "onnx/text_model.onnx").write_bytes(text_graph(6))
    write_lock(TOWER, "here", {})
    assert clip_text.load_text_tower() is None
    write_lock(TOWER, "here", {"onnx/text_model.onnx": sha256(tower / "onnx/text_model.onnx")})
    with pytest.raises(MomentseekError, match="6 numbers and not 512"):
        clip_text.load_text_tower()


def test_the_table_has_the_vectors_of_its_words(full):
    """A row with the wrong word would be as far from the bridge's vector of the word as any other."""
    words = ["dog", "kitchen", "airplane", "snow", "bicycle", "tree", "woman", "guitar"]
    table = full.encode(words)
    bridge = ClipWords(full._sentences, lambda: None).encode(words)
    assert ((table @ bridge.T).argmax(axis=1) == np.arange(len(words))).all()
    assert (table * bridge).sum(axis=1).min() > 0.4


def test_the_table_is_converted_once(full, monkeypatch):
    monkeypatch.setattr(clip_text, "read_word_vectors", lambda folder: pytest.fail("it was read again"))
    assert clip_text.load_word_table().rows == full._table.rows


def test_reports_unknown_words_with_suggestions(full):
    assert full.read("a dgo on a skatebord").by("unknown") == ("dgo", "skatebord")
    assert [full.suggestion(word) for word in ("dgo", "skatebord", "kitchn", "qwertz")] == [
        "dog",
        "skateboard",
        "kitchen",
        "",
    ]
    for rare in ("a paraglider", "man riding a segway", "doing aerobics", "Minecraft", "an axolotl", "Obama", "a café"):
        assert full.read(rare).by("unknown") == ()
        assert full.knows(rare)


@pytest.mark.parametrize("with_table", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "ein Hund",
        "un perro",
        "une femme",
        "eine Frau mit einem Kind",
        "der Hund läuft am Strand",
        "die Katze",
        "собака",
        "犬",
    ],
)
def test_other_languages_are_unknown(request, sentences, with_table, text):
    words = request.getfixturevalue("full") if with_table else ClipWords(sentences, lambda: None)
    assert not words.knows(text)
    assert " ".join(words.read(text).by("unknown")) == text.lower()
    assert unit_rows(words.encode([text])).all()


@pytest.mark.parametrize("text", ["la la land", "El Capitan climbing", "a van on the road", "people die", "someone"])
def test_english_is_recognised(full, text):
    assert full.knows(text)
    assert not full.read(text).foreign


def test_text_vector_does_not_depend_on_the_batch(sentences):
    texts = ["a man eats soup", "two hot dogs", "parachute", "a golden retriever opens a door"]
    together = ClipWords(sentences, lambda: None).encode(texts)
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_array_equal(ClipWords(sentences, lambda: None).encode([text])[0], row)


def test_query_sentences_cover_all_minilm_inputs(small, sentences):
    class Noting:
        name, dim = sentences.name, sentences.dim

        def __init__(self):
            self.asked = []

        def encode(self, texts):
            self.asked += texts
            return sentences.encode(texts)

    noting = Noting()
    words = ClipWords(noting, lambda: small._table)
    for text in ("The man eats two hot dogs", "door", "a parachute"):
        noting.asked.clear()
        words.encode([text])
        assert noting.asked == words.query_sentences(text)
