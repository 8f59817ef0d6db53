"""Files are recognised by their structure, each as exactly one format."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, recognise
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import register


def test_each_sample_is_claimed_by_its_own_format_alone(sample_name, sample):
    assert [f.name for f in FORMATS.values() if f.claims(sample)] == [sample_name]
    assert recognise(sample, FORMATS[sample_name].kind).name == sample_name


def test_every_format_says_what_it_is_and_reads_its_kind(sample_name):
    format = FORMATS[sample_name]
    assert format.read is not None
    assert format.title
    assert format.notes.endswith(".")


def test_names_are_unique():
    with pytest.raises(MomentseekError, match="a format called 'tvr' already exists"):
        register("tvr", lambda _: False, lambda *_: None, kind="truth", title="another")


@pytest.mark.parametrize(
    ("data", "kind", "sentence"),
    [
        (b'{"desc": "he sings", "desc_id": 3}', "truth", "queries without times"),
        (b'{"vid_name": "a", "clip_id": 3, "ts": [0, 1]}', "truth", "it looks like TVC captions"),
        (b"pair_id,worker,relevance\r\n0,1,2\r\n", "truth", "single workers' labels"),
        (b'{"query_id": "q", "video": "a", "start": 0, "end": 1}', "truth", "looks like momentseek's own predictions"),
        (b'{"a": {"b": 1}}', None, "not recognised as any known file"),
        (b"[]", "run", "not recognised as predictions"),
        (b"just words", "corpus", "not recognised as a list of videos"),
        (b"\x00\x01\xff\xfe", "truth", "not recognised as ground truth"),
    ],
)
def test_what_is_not_recognised_is_explained(data, kind, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        recognise(Document(Path("file"), data), kind)


def test_a_single_json_line_is_not_taken_for_a_list_of_videos():
    line = b'{"qid": 3, "relevant_windows": [[0, 2]], "vid": "a", "query": "x"}'
    assert recognise(Document(Path("one.jsonl"), line)).name == "qvhighlights"
