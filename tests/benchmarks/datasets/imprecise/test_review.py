"""Write and read the review queue."""

from __future__ import annotations

import pytest

from momentseek.benchmarks.datasets.imprecise.query_files import ReviewedQuery, ReviewRequest, read_queue, write_queue
from momentseek.core.errors import MomentseekError


def test_round_trip(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(
        write_queue(
            [ReviewRequest("1", "Élan sits.", "Élan sits.", ("a", "b")), ReviewRequest("2", "x", " y ", ("c",))]
        )
    )
    untouched = {"1": ReviewedQuery("Élan sits.", "Élan sits.", True), "2": ReviewedQuery("x", "y", True)}
    assert read_queue(path) == untouched
    path.write_text(path.read_text().replace('"query": "Élan', '"query": " A\\n man'))
    assert read_queue(path) == {**untouched, "1": ReviewedQuery("Élan sits.", "A man sits.")}


def test_a_queue_without_attempts_cannot_tell_what_is_untouched(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "original": "a", "query": "b"}')
    assert read_queue(tmp_path / "q.jsonl") == {"1": ReviewedQuery("a", "b")}


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
        read_queue(tmp_path / "q.jsonl")
