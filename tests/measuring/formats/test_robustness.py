"""Whatever is wrong with a file, the answer is one sentence: never a traceback, never a warning."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from hypothesis import settings

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, Reading
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.files import read_document

JUNK = [
    None,
    True,
    -1,
    2.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "12",
    "text",
    [],
    [None],
    [[]],
    {},
    {"a": 1},
    [1, 2],
]


def read(document, format, corpus):
    return read_document(document, format, Reading("error", corpus))


def places(value, path=()):
    """All places inside a JSON value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def with_change(value, path, change):
    value = copy.deepcopy(value)
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    if change is places:  # any marker that is not JSON: take the entry away
        del inside[path[-1]]
    else:
        inside[path[-1]] = change
    return value


def complaint(call, *arguments):
    """The sentence it fails with, or an empty one."""
    try:
        call(*arguments)
    except MomentseekError as e:
        return str(e)
    return ""


def survives(document, format, corpus):
    sentence = complaint(read, document, format, corpus)
    assert not sentence or str(document.path) in sentence or "no video has the index" in sentence
    assert "\n" not in sentence


def test_the_sample_itself_is_good(sample_name, sample, corpus):
    needs = corpus if sample_name == "tvr-ranking-indexed" else None
    assert read(sample, FORMATS[sample_name], needs) is not None


def test_one_wrong_value_anywhere(sample_name, sample, corpus):
    if not sample.is_json:
        pytest.skip("not JSON")
    value = sample.json
    needs = corpus if sample_name == "tvr-ranking-indexed" else None
    for path in places(value):
        for change in [places, *JUNK]:
            changed = json.dumps(with_change(value, path, change)).encode()
            document = Document(Path("some.json"), changed)
            survives(document, FORMATS[sample_name], needs)


def test_recognition_survives_one_wrong_value(sample_name, sample):
    if not sample.is_json:
        pytest.skip("not JSON")
    chance = random.Random(5)
    everywhere = list(places(sample.json))
    for path in chance.sample(everywhere, min(settings().max_examples // 2, len(everywhere))):
        for change in [places, *(j for j in JUNK if j != 10**400)]:
            document = Document(Path("x"), json.dumps(with_change(sample.json, path, change)).encode())
            assert sum(format.claims(document) for format in FORMATS.values()) <= 1


def test_damaged_bytes(sample_name, sample):
    chance = random.Random(11)
    for _ in range(3 * settings().max_examples):
        data = bytearray(sample.data)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = chance.randrange(1, len(data) + 1)
        document = Document(Path("some.bin"), bytes(data[:cut]))
        survives(document, FORMATS[sample_name], None)
        document = Document(Path("some.bin"), bytes(data[:cut]))
        for format in FORMATS.values():
            assert "\n" not in complaint(format.claims, document)


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"[1]", b"[[]]", b"null", b"3", b'"text"', b"a,b\n", b"PAR1", b"PAR1PAR1"]
)
def test_any_format_forced_on_a_file_that_is_something_else(sample_name, corpus, data):
    if FORMATS[sample_name].kind == "corpus" and data == b"{}":
        pytest.skip("a list of no videos is a list of videos")
    with pytest.raises(MomentseekError):
        read(Document(Path("x"), data), FORMATS[sample_name], corpus)
