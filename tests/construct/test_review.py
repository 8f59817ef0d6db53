"""The review queue, there and back."""

from __future__ import annotations

import pytest

from momentseek.construct.review import Queued, as_queue, read_reviewed
from momentseek.errors import MomentseekError


def test_round_trip(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(as_queue([Queued("1", "Élan sits.", "Élan sits.", ("a", "b")), Queued("2", "x", " y ", ("c",))]))
    assert read_reviewed(path) == {"1": ("Élan sits.", "Élan sits."), "2": ("x", "y")}


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
