"""Two encoders whose vectors are concatenated in one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.fused import SHARE, FusedEncoder
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Understanding, Vectors, fingerprint
from momentseek.recognition.encoders.registry import image_text_encoder, register_image_text


class Colours:
    """A picture's mean colour, and a text's count of three letters."""

    name, dim, short_side = "colours", 3, 16

    def __init__(self, turn: int = 0, known: str = "rgb", ready: bool = True) -> None:
        self.turn, self.known, self.ready = turn, known, ready
        self.fingerprint = f"colours {turn}"

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        return _unit(np.roll([image.reshape(-1, 3).mean(axis=0) + 1 for image in images], self.turn, axis=1))

    def encode(self, texts: Sequence[str]) -> Vectors:
        return _unit(np.roll([[text.count(c) + 1 for c in "rgb"] for text in texts], self.turn, axis=1))

    def knows(self, text: str) -> bool:
        return bool(self.understand(text).words)

    def understand(self, text: str) -> Understanding:
        words, known = text.split(), tuple(word for word in text.split() if word in self.known)
        return Understanding(
            (f"colours {self.turn}",), (), known, (), tuple(word for word in words if word not in known)
        )


def _unit(rows: object) -> Vectors:
    wide = np.asarray(rows, np.float32)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), np.float32)


PICTURES = [np.full((4, 4, 3), colour, np.uint8) for colour in ((250, 9, 9), (9, 250, 9), (9, 9, 250))]


def test_rows_hold_both_vectors_and_have_length_one() -> None:
    first, second = Colours(), Colours(1)
    both = FusedEncoder(first, second)
    rows = both.encode_images(PICTURES)
    assert both.blocks == (3, 3)
    assert rows.shape == (3, both.dim) == (3, 6)
    assert isinstance(both, ImageTextEncoder)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
    for given, expected in zip(both.split(rows), (first, second), strict=True):
        np.testing.assert_allclose(given, expected.encode_images(PICTURES), atol=1e-6)


def test_one_inner_product_adds_the_scores_of_both() -> None:
    both = FusedEncoder(Colours(), Colours(1))
    query = both.encode(["rgg"])[0]
    weights = np.repeat([2.0, 0.5], both.blocks)
    rows = both.encode_images(PICTURES)
    scores = [part.encode_images(PICTURES) @ part.encode(["rgg"])[0] for part in both.parts]
    np.testing.assert_allclose(rows @ (query * weights), SHARE * (2 * scores[0] + 0.5 * scores[1]), rtol=1e-5)


def test_rows_are_filled_later() -> None:
    both = FusedEncoder(Colours(), Colours(1))
    wide = both.widen(both.first.encode_images(PICTURES))
    assert not both.is_filled(wide).any()
    assert np.linalg.norm(wide, axis=1) == pytest.approx(SHARE)
    filled = both.fill(wide, both.second.encode_images(PICTURES))
    assert both.is_filled(filled).all()
    np.testing.assert_allclose(filled, both.encode_images(PICTURES), atol=1e-6)


def test_second_columns_are_zero_without_weights() -> None:
    both = FusedEncoder(Colours(), Colours(1, ready=False))
    assert not both.ready
    assert not both.is_filled(both.encode_images(PICTURES)).any()


def test_word_is_unknown_if_neither_knows_it() -> None:
    both = FusedEncoder(Colours(known="r"), Colours(1, known="g"))
    assert both.understand("r g x") == Understanding(("colours 0", "colours 1"), (), ("r", "g"), (), ("x",))
    assert both.knows("g")
    assert not both.knows("x y")
    assert not hasattr(both, "evidence")


def test_pools_the_rows_of_a_scene() -> None:
    both = FusedEncoder(Colours(), Colours(1))
    rows = both.encode_images(PICTURES[:2])
    rows[1, 3:] = 0
    pooled = both.pool(rows)
    assert np.linalg.norm(pooled) == pytest.approx(1)
    np.testing.assert_allclose(pooled[3:], rows[0, 3:], atol=1e-6)  # what is not filled has no say


def test_spec_with_two_encoders() -> None:
    register_image_text("colours-for-a-spec", Colours)
    both = image_text_encoder("colours-for-a-spec+colours-for-a-spec")
    assert isinstance(both, FusedEncoder)
    assert both.name == "colours-for-a-spec+colours-for-a-spec"
    assert fingerprint(both) == fingerprint(FusedEncoder(Colours(), Colours())) != fingerprint(Colours())
    assert fingerprint(both) != fingerprint(FusedEncoder(Colours(), Colours(1)))
    with pytest.raises(MomentseekError, match="there is no image-text encoder 'nothing'"):
        image_text_encoder("colours-for-a-spec+nothing")


def test_labels_survive_in_stored_rows() -> None:
    things = image_text_encoder("things")
    both = FusedEncoder(things, Colours())
    photo = np.random.default_rng(3).integers(0, 255, (64, 64, 3), np.uint8)
    own = things.encode_images([photo]).astype(np.float16)  # as a library of things keeps them
    wide = both.widen(own).astype(np.float16)
    for text in ("a dog", "an animal beside a tabby cat", "a screen"):
        expected = things.evidence(text)(own.astype(np.float32))  # type: ignore[attr-defined]
        np.testing.assert_allclose(both.evidence(text)(wide), expected, atol=2e-3)
