"""The review queue, there and back."""

from __future__ import annotations

import pytest

from momentseek.construct.imprecise.review import Queued, Reviewed, as_queue, read_reviewed
from momentseek.errors import MomentseekError


def test_round_trip(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(as_queue([Queued("1", "Élan sits.", "Élan sits.", ("a", "b")), Queued("2", "x", " y ", ("c",))]))
    untouched = {"1": Reviewed("Élan sits.", "Élan sits.", True), "2": Reviewed("x", "y", True)}
    assert read_reviewed(path) == untouched
    path.write_text(path.read_text().replace('"query": "Élan', '"query": " A\\n man'))
    assert read_reviewed(path) == {**untouched, "1": Reviewed("Élan sits.", "A man sits.")}


def test_a_queue_without_attempts_cannot_tell_what_is_untouched(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "original": "a", "query": "b"}')
    assert read_reviewed(tmp_path / "q.jsonl") == {"1": Reviewed("a", "b")}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("plain", "expected the JSON Lines of a review queue"),
        ('{"id": "1", "original": "a"}', "record 1 has no 'query'"),
        ('{"id": "1", "original": "a", "query": 3}', "'query' of record 1 is 3; expected text"),
        ('{"id": "1", "original": "a", "query": " "}', "record 1 has an empty query"),
        ('{"id": "1", "original": "a", "query": "b"}\n' * 2, "record 2 repeats the id 1"),
    ],
)
def test_refusals(tmp_path, text, sentence):
    (tmp_path / "q.jsonl").write_text(text)
    with pytest.raises(MomentseekError, match=sentence):
        read_reviewed(tmp_path / "q.jsonl")
