"""The checks of a rewritten query."""

from __future__ import annotations

import json

import pytest

from momentseek.benchmarks.datasets.imprecise import verification
from momentseek.benchmarks.datasets.imprecise.names import Gazetteer, show_of
from momentseek.benchmarks.datasets.imprecise.substitution import substitute
from momentseek.benchmarks.datasets.imprecise.verification import (
    MissingVectors,
    RewriteVerifier,
    lexical_similarity,
    load_similarity,
    names_left,
)
from momentseek.core.errors import MomentseekError

CAST = Gazetteer({}).with_names([("Ross", "male"), ("Castle", "male")])


def test_reasons():
    verdicts = RewriteVerifier(CAST, lambda a, b: [0.39, 0.4, 0.9, 0.0]).verify(
        ["Ross sits."] * 4 + ["A dog."],
        ["A man sits.", "A man sat.", "Ross Geller sat with a castle.", " ", "A dog."],
        [""] * 5,
    )
    assert [v.reasons for v in verdicts] == [
        ("similarity 0.39 is below 0.4",),
        (),
        ("names are left: Ross Geller",),
        ("nothing is left", "similarity 0.00 is below 0.4"),
        (),
    ]
    assert [v.passed for v in verdicts] == [False, True, False, False, True]


def test_a_second_opinion():
    checked = RewriteVerifier(CAST, lexical_similarity, recognise=lambda texts: [["Vance"] for _ in texts])
    assert checked.verify(["Vance sits."], ["Vance sits."], [""])[0].names == ("Vance",)


def test_names_left_wherever_they_stand():
    assert names_left("the Castle and ROSS, ross's mug", CAST) == ["Castle", "ROSS", "ross"]
    assert names_left("a castle", CAST) == []


def test_lexical_similarity_has_its_ends():
    assert lexical_similarity(["a dog runs", "", "abc"], ["a dog runs", "", "xyz"]) == pytest.approx([1, 1, 0])


def test_without_an_encoder_letters_are_compared(monkeypatch):
    def missing(name="minilm", progress=True):
        raise MomentseekError("it is not installed")

    monkeypatch.setattr(verification, "encoder_similarity", missing)
    similarity, name, note = load_similarity(None)
    assert (similarity, name) == (lexical_similarity, "lexical")
    assert note == "similarity compares letters, not meaning, because it is not installed"
    with pytest.raises(MomentseekError, match="not installed"):
        load_similarity("minilm")


def test_encoder_similarity(tmp_path):
    import numpy as np

    np.savez(tmp_path / "v.npz", texts=np.array(["a", "b"]), vectors=np.array([[1.0, 0], [0.6, 0.8]]))
    similarity, name, note = load_similarity(f"file:{tmp_path / 'v.npz'}")
    assert similarity(["a", "a"], ["a", "b"]) == pytest.approx([1, 0.6])
    assert name.startswith("file:")
    assert not note


def test_all_missing_vectors_are_named_at_once(tmp_path):
    import numpy as np

    np.savez(tmp_path / "v.npz", texts=np.array(["a b", " c"]), vectors=np.eye(2))
    similarity, _, _ = load_similarity(f"file:{tmp_path / 'v.npz'}")
    assert similarity([" a \n b"], [" c"]) == [0]
    with pytest.raises(MissingVectors, match=r"v.npz: has no vector for 2 texts, such as 'x y'; add what") as error:
        similarity(["a b", "x  y", "x y"], [" c", "z", "z"])
    assert error.value.texts == ("x y", "z")


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.figures)])
def test_tvr_names_are_gone(data, tvr_cast, every):
    """The demand: no character's name left in at least 99 % of the val set's video-type descriptions."""
    rows = [json.loads(line) for line in (data / "tvr/tvr_val_release.jsonl").read_text().splitlines()]
    cast = tvr_cast
    chosen = [(r["desc"], show_of(r["vid_name"])) for r in rows if r["type"] == "v"]
    assert len(chosen) == 8097
    chosen = chosen[::every]
    after = [substitute(text, cast, show=show).text for text, show in chosen]
    before_named = sum(bool(names_left(text, cast, show)) for text, show in chosen)
    named = sum(bool(names_left(text, cast, show)) for text, (_, show) in zip(after, chosen, strict=True))
    assert before_named > 0.92 * len(chosen)
    assert named <= 0.01 * len(chosen)
