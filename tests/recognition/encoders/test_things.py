import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recognition.encoders.fakes import needs_labels

from momentseek.recognition.encoders.protocol import ImageTextEncoder
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.encoders.text_cache import unit_rows
from momentseek.recognition.encoders.things import (
    COLUMNS,
    KEPT_LABELS,
    add_label_columns,
    label_names,
    named_kinds,
    read_label_columns,
    unit_vectors,
)

data = pytest.importorskip("skimage.data")


@pytest.fixture(scope="module")
def encoder():
    return image_text_encoder("things")


@given(st.integers(0, 1000), st.floats(0.5, 20))
def test_labels_survive_rounding_and_do_not_change_dot_products(seed, sharpness):
    rng = np.random.default_rng(seed)
    vectors = unit_vectors(rng.normal(size=(3, 8)).astype(np.float32))
    chances = rng.dirichlet(np.full(1000, 1 / sharpness), 3).astype(np.float32)
    rows = add_label_columns(vectors, chances)
    assert unit_rows(rows).all()
    numbers, kept = read_label_columns(rows.astype(np.float16).astype(np.float32))
    best = np.argsort(-chances, axis=1, kind="stable")[:, :KEPT_LABELS]
    assert (numbers == best).all()
    np.testing.assert_allclose(kept, np.take_along_axis(chances, best, axis=1), atol=1e-3)
    query = np.pad(unit_vectors(rng.normal(size=(1, 8)).astype(np.float32)), ((0, 0), (0, COLUMNS)))
    cosines = (vectors @ query[0, :8]).tolist()
    np.testing.assert_allclose((rows @ query[0]) / np.sqrt(1 - 0.15**2), cosines, atol=1e-6)


def test_kinds_are_sets_of_labels():
    names = label_names()
    kinds = dict(named_kinds("dogs, a cat, a teddy bear, fruit and mugs in a kitchen"))
    assert set(kinds) == {"dogs", "cat", "teddy bear", "fruit", "mugs"}
    assert {"tabby cat", "tiger cat"} <= {names[at] for at in kinds["cat"]}
    assert len(kinds["dogs"]) == 118
    assert [names[at] for at in kinds["mugs"]] == ["coffee mug"]
    assert named_kinds("") == named_kinds("people walking slowly") == named_kinds("qwertz 123") == []


@needs_labels
def test_rows_are_units_and_find_their_photographs(encoder):
    rows = encoder.encode_images([data.chelsea(), data.coffee(), data.rocket()])
    assert isinstance(encoder, ImageTextEncoder)
    assert rows.shape == (3, encoder.dim)
    assert unit_rows(rows).all()
    assert unit_rows(encoder.encode(["", "a cat"])).all()
    scores = encoder.encode(["a cat looking at the camera", "someone drinks coffee", "a rocket launch"]) @ rows.T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
    assert encoder.encode_images([]).shape == encoder.encode([]).shape == (0, encoder.dim)


@needs_labels
def test_evidence_is_absolute(encoder):
    rows = encoder.encode_images([data.chelsea(), data.coffee(), data.rocket()])
    cat, dog, animal = (encoder.evidence(text)(rows) for text in ("a cat", "a dog", "an animal"))
    assert cat[0] > 0.5
    assert animal[0] > 0.4
    assert max(cat[1:].max(), dog.max(), animal[1:].max()) < 0.05
    assert not encoder.evidence("people walking")(rows).any()
    assert encoder.evidence("a cat")(rows[:0]).shape == (0,)
    understood = encoder.understand("a dog, hund, qwertz")
    assert (understood.labels, understood.unknown) == (("dog",), ("hund", "qwertz"))


@needs_labels
def test_pooled_row_keeps_labels(encoder):
    cat, coffee = rows = encoder.encode_images([data.chelsea(), data.coffee()])
    pooled = encoder.pool(rows)
    assert np.linalg.norm(pooled) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(encoder.pool(rows[:1]), cat, atol=1e-3)
    sure = encoder.evidence("a cat")(np.stack([cat, coffee, pooled]))
    assert sure[2] == pytest.approx((sure[0] + sure[1]) / 2, abs=0.1)
    query = encoder.encode(["a cat"])[0]
    assert coffee @ query < pooled @ query < cat @ query
