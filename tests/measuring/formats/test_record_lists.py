"""Columns cut out of JSON: whatever is accepted is what a parser reads, to the last bit."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.core.native.kernels import kernels
from momentseek.measuring.formats import document, files, read_run, read_truth
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.record_lists import RecordLists, column_objects, cut_records

pytestmark = pytest.mark.skipif(kernels() is None, reason="nothing is compiled")

NAMES = st.text(max_size=6)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
COLUMNS = st.sampled_from(["text", "number", "whole", "pair"])


@st.composite
def like_records(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Lists of records, all with the same names in the same order, and the same kinds of values."""
    kinds = draw(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=4))
    values = {
        "text": st.text(max_size=5),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "whole": st.integers(-(2**53), 2**53),
        "pair": st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    }
    record = st.fixed_dictionaries({name: values[kind] for name, kind in kinds.items()})
    return draw(st.lists(st.lists(record, max_size=3), min_size=1, max_size=4))


def rebuild(lists: RecordLists) -> Any:
    """The JSON value again, from the rest and the columns."""
    values = {name: column_objects(column) for name, column in lists.columns.items()}
    assert None not in values.values()
    records = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]  # type: ignore[arg-type]
    ends = lists.counts.cumsum().tolist()

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill(some) for name, some in value.items()}
        if isinstance(value, list):
            if len(value) == 1 and type(value[0]) is int:
                return records[ends[value[0]] - lists.counts[value[0]] : ends[value[0]]]
            return [fill(some) for some in value]
        return value

    return fill(lists.rest)


@given(like_records(), st.sampled_from([None, 1]), st.booleans())
def test_lists_of_like_records_are_cut_out(lists: list[list[dict[str, Any]]], indent: int | None, ascii: bool) -> None:
    value = {"about": "a [0] {", **{f"q{i}": some for i, some in enumerate(lists)}}
    found = cut_records(json.dumps(value, indent=indent, ensure_ascii=ascii).encode("utf-8", "surrogatepass"))
    if any(lists) and found is not None:  # texts may be no UTF-8, or the same in two ways
        assert rebuild(found) == value
    elif not any(lists):
        assert found is None


def test_what_is_usual_is_cut_out() -> None:
    value = [{"id": 7, "moments": [{"video": "ä\\n", "span": [0.1, 2], "n": 1}] * 2}, {"id": 8, "moments": []}]
    found = cut_records(json.dumps(value).encode())
    assert found is not None
    assert found.rest == [{"id": 7, "moments": [0]}, {"id": 8, "moments": []}]
    assert found.sizes([some["moments"] for some in found.rest]) == [2, 0]
    assert found.outline()[0]["moments"] == [{"video": "ä\\n", "span": [0.1, 2], "n": 1}]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 25), st.sampled_from("efgr"))
def test_numbers_are_the_nearest(number: float, digits: int, form: str) -> None:
    text = repr(number) if form == "r" else f"{number:.{digits}{form}}"
    found = cut_records(f'{{"q":[{{"x":{text}}}]}}'.encode())
    try:
        wanted = orjson.loads(text)
    except ValueError:  # such as 1e+400, which no double is
        assert found is None
        return
    if found is None:  # whole and too long
        assert text.removeprefix("-").isdigit()
        assert abs(wanted) > 2**53
        return
    column = column_objects(found.columns["x"])  # type: ignore[arg-type]
    assert column == [wanted]
    assert type(column[0]) is type(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "01", "1.", ".5", "+1", "-", "1e", "1e+", "0x10", "NaN", "Infinity", "1e999", "true", "null", "[]",
        "[1, true]", "{}", '"\\x"', '"\n"', '"a', "12345678901234567890", "1 2", "[1,]", '"\\ud800"', '"\xff"',
    ],
)  # fmt: skip
def test_what_a_parser_refuses_or_reads_otherwise_is_left_to_it(text: str) -> None:
    assert cut_records(f'{{"q": [{{"x": {text}}}]}}'.encode("latin-1")) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"q": [{"a": 1}, {"b": 1}]}',  # another name
        '{"q": [{"a": 1, "b": 1}, {"b": 1, "a": 1}]}',  # another order
        '{"q": [{"a": 1}, {"a": "1"}]}',  # another kind
        '{"q": [{"a": [1, 2]}, {"a": [1]}]}',  # another length
        '{"q": [{"a": 1}, {"a": 1, "b": 2}]}',
        '{"q": [{"a": 1, "a": 2}]}',  # a name twice
        '{"q": [{"a": 1}], "r": [0]}',  # which looks like a list that was cut out
        '{"q": [{"a": 1}',
        '{"q": [{"a": 1}]',
        '{"q": [{"a": 1}]} x',
        '{"q": [{"a": 1} {"a": 1}]}',
        '{"q": [{"a": 1},]}',
        '{"q": [{"a": "\\u0061"}, {"a": "a"}]}',  # one text in two spellings
        '{"q": [{}]}',
        "[]",
        "",
    ],
)
def test_other_files_are_left_to_the_parser(text: str) -> None:
    assert cut_records(text.encode()) is None


@pytest.mark.parametrize("between", ["\n", "\r\n", "\n\n ", " \n"])
def test_lines_of_like_records_are_one_list(between: str) -> None:
    found = cut_records(between.join(['{"a": 1, "b": "x"}', '{"a": 2, "b": "y"}']).encode())
    assert found is not None
    assert (found.rest, found.counts.tolist()) == ([0], [2])
    assert rebuild(found) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '{"a": 1} {"a": 2}', '{"a":\n1}\n{"a": 2}', '{"a": 1}\n{"a": 2', '{"a": 1},\n{"a": 2}']
)
def test_what_is_no_json_lines_is_left_to_the_parser(text: str) -> None:
    assert cut_records(text.encode()) is None


def test_damaged_text_is_refused_or_read_as_a_parser_reads_it() -> None:
    value = {f"q{i}": [{"v": f"n{j % 3}", "t": [j / 4, j * 1.5], "s": -j} for j in range(4)] for i in range(3)}
    whole = json.dumps(value).encode()
    chance = random.Random(0)
    accepted = 0
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randint(0, 2)] = bytes(
                chance.choices(b'{}[]",:\\0123.-e \nnq', k=chance.randint(0, 2))
            )
        found = cut_records(bytes(damaged))
        if found is not None:
            read = orjson.loads(bytes(damaged))  # must be JSON
            accepted += 1
            if None not in map(column_objects, found.columns.values()) and len(read) == 3:
                assert rebuild(found) == read
    assert accepted > 100


PREDICTIONS: dict[str, list[dict[str, Any]]] = {
    "7": [{"video_name": "b", "timestamp": [0, 2.5], "model_scores": 0.5}] * 2,
    "8": [],
    "9": [{"video_name": "ä", "timestamp": [1.25, 3], "model_scores": 1}],
}
TRUTH = [
    {
        "query_id": number,
        "query": "someone",
        "relevant_moment": [
            {"pair_id": i, "video_name": f"v{i}", "timestamp": [0, 5.5], "duration": 9, "caption": "é", "relevance": i}
            for i in range(number)
        ],
    }
    for number in (2, 0, 3)
]


LINES = [
    {"query_id": query, "query": f"who {query}", "video": video, "start": 1, "end": 2.5, "score": -1.5}
    for query, video in (("ä", "b"), ("ä", "a"), ("c", "b"))
]
JUDGED = [
    {"query_id": i // 2, "video": "v", "start": 0, "end": i + 1, "relevance": i, "duration": 9.5} for i in range(4)
]


@pytest.mark.parametrize(
    ("read", "values"), [(read_run, [PREDICTIONS]), (read_truth, [TRUTH]), (read_run, LINES), (read_truth, JUDGED)]
)
def test_readers_give_the_same_by_columns_and_by_parsing(
    read: Any, values: list[Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    path.write_text("\n".join(map(json.dumps, values)))
    opened: list[Document] = []
    keep = files.open_document
    monkeypatch.setattr(files, "open_document", lambda path: opened.append(keep(path)) or opened[-1])
    quick = read(path)
    assert "json" not in vars(opened[0]), "the whole file was parsed all the same"
    monkeypatch.setattr(document, "cut_records", lambda data: None)
    slow = read(path)
    assert "json" in vars(opened[1])
    assert quick.to_columns() == slow.to_columns()
    assert (quick.query_ids, quick.videos, quick.queries) == (slow.query_ids, slow.videos, slow.queries)
    assert quick.offsets.tolist() == slow.offsets.tolist()
    if read is read_truth:
        assert quick.durations.tolist() == slow.durations.tolist()


@pytest.mark.parametrize(
    "lines",
    [
        [LINES[0], LINES[2], LINES[1]],  # a query's lines apart
        [*LINES, {**LINES[2], "score": None}],
        [*LINES, {**LINES[2], "task": "SVMR"}],
        [{**line, "saliency": [1.0]} for line in LINES],
    ],
)
def test_what_columns_cannot_tell_is_parsed(lines: list[Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))

    def outcome() -> Any:
        try:
            run = read_run(path)
        except MomentseekError as e:
            return str(e)
        return run.to_columns(), run.task, run.saliency is None

    quick = outcome()
    monkeypatch.setattr(document, "cut_records", lambda data: None)
    assert quick == outcome()


@pytest.mark.parametrize("score", ["0.5, 1", '"high"', "null"])
def test_a_wrong_record_is_named_as_ever(score: str, tmp_path: Any) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(PREDICTIONS).replace('"model_scores": 1', f'"model_scores": {score}'))
    with pytest.raises(MomentseekError, match=r"run\.json"):
        read_run(path)
