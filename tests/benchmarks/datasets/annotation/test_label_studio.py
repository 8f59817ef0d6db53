"""Label Studio's tasks and exports."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate
from momentseek.benchmarks.datasets.annotation.label_studio import (
    build_tasks,
    check_address,
    labelling_page,
    read_exports,
)
from momentseek.core.errors import MomentseekError

PAIR = AnnotationCandidate(
    "q1/7", "q1", "a dog <runs> & barks", "my park/#1", 2.5, 5.1234, 0.8, 1, 1, "hidden caption", 60.0
)


def read_export(exported, source="(memory)"):
    return read_exports([(exported, source)])


def annotated(pair, *annotations):
    return {"id": 1, "data": {"pair_id": pair}, "annotations": list(annotations)}


def answer(who, value, **more):
    return {"completed_by": who, "result": [{"from_name": "relevance", "type": "choices", "value": value}], **more}


def test_a_task_plays_the_moment_and_hides_the_caption():
    (task,) = build_tasks([PAIR], "https://example.org/v/", suffix=".webm")
    assert task["data"]["video"] == "https://example.org/v/my%20park/%231.webm#t=2.5,5.123"
    assert task["data"]["query"] == "a dog <runs> & barks"
    assert task["meta"] == {
        "pair_id": "q1/7",
        "query_id": "q1",
        "video": "my park/#1",
        "start": 2.5,
        "end": 5.1234,
        "rank": 1,
        "batch": 1,
    }
    assert "hidden" not in str(task)


def test_the_page_asks_for_five_levels_of_the_video():
    page = ET.fromstring(labelling_page())
    names = {e.get("name") for e in page.iter() if e.get("name")}
    (question,) = page.iter("Choices")
    assert question.get("toName") in names
    assert [c.get("alias") for c in question] == ["4", "3", "2", "1", "0"]
    used = {v[1:] for e in page.iter() for v in e.attrib.values() if v.startswith("$")}
    assert used <= set(build_tasks([PAIR], "x")[0]["data"])


@pytest.mark.parametrize(
    "value",
    [{"choices": ["3"]}, {"choices": ["3 good"]}, {"rating": 3}, {"rating": 3.0}],
)
def test_answers_in_every_form(value):
    assert read_export([annotated("p", answer(5, value))]).labels == (("p", "5", 3),)


def test_people_by_number_or_object():
    export = [annotated("p", answer({"id": 4, "email": "a@b"}, {"rating": 1}), answer({"email": "c@d"}, {"rating": 2}))]
    assert read_export(export).labels == (("p", "4", 1), ("p", "c@d", 2))


def test_what_is_no_label_is_counted():
    found = read_export(
        [
            annotated("a", answer(1, {"choices": ["0"]}), answer(2, {"choices": ["4"]}, was_cancelled=True)),
            annotated("b", {"completed_by": 1, "result": []}),
            {"data": {"query": "x"}, "meta": {"pair_id": "c"}},
            annotated("d", {"completed_by": 1, "result": [{"from_name": "comment", "value": {"text": ["hm"]}}]}),
        ]
    )
    assert found.labels == (("a", "1", 0),)
    assert (found.tasks, found.missing, found.cancelled, found.empty) == (4, ("b", "c", "d"), 1, 2)


def test_the_last_answer_counts_and_time_orders():
    found = read_export(
        [
            annotated(
                "a",
                answer(1, {"rating": 4}, created_at="2024-03-02T10:00:00Z"),
                answer(1, {"rating": 2}, created_at="2024-03-02T12:00:00Z"),
                answer(2, {"rating": 3}, created_at="2024-03-01T09:00:00Z"),
            )
        ]
    )
    assert found.labels == (("a", "2", 3), ("a", "1", 2))
    assert found.replaced == 1


@pytest.mark.parametrize(
    ("export", "sentence"),
    [
        ({"tasks": []}, "not a Label Studio export"),
        ([{"data": {"video": "x"}}], "task 1 has no pair_id"),
        ([3], "task 1 has no pair_id"),
        ([annotated("p", answer(1, {"choices": ["7"]}))], r"task 1 \(pair p\) has the answer '7'"),
        ([annotated("p", answer(1, {"rating": 5}))], "has the answer '5'"),
        ([annotated("p", answer(1, {"choices": ["1", "2"]}))], "2 answers at once"),
        ([annotated("p", answer(None, {"rating": 1}))], "without completed_by"),
        ([{"data": {"pair_id": "p"}, "annotations": "none"}], "'annotations' is not a list"),
        ([annotated("p", 3)], "an annotation that is not an object"),
    ],
)
def test_refusals(export, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        read_export(export)


def test_one_annotation_in_two_exports_counts_as_it_was_last():
    early = answer(1, {"rating": 4}, id=7, created_at="2024-03-02")
    edited = answer(1, {"rating": 2}, id=7, created_at="2024-03-02")
    other_server = answer(2, {"rating": 3}, id=7, created_at="2024-03-01")
    found = read_exports([([annotated("a", early)], "x"), ([annotated("a", edited, other_server)], "y")])
    assert found.labels == (("a", "2", 3), ("a", "1", 2))
    assert (found.tasks, found.repeated, found.replaced) == (1, 1, 0)
    withdrawn = read_exports([([annotated("a", early)], "x"), ([annotated("a", {**early, "result": []})], "y")])
    assert (withdrawn.labels, withdrawn.missing, withdrawn.empty, withdrawn.repeated) == ((), ("a",), 1, 1)


def test_a_person_counts_once_per_pair_over_all_exports():
    found = read_exports(
        [([annotated("a", answer(1, {"rating": 4}))], "x"), ([annotated("a", answer(1, {"rating": 1}))], "y")]
    )
    assert (found.labels, found.replaced, found.repeated) == ((("a", "1", 1),), 1, 0)


@pytest.mark.parametrize(
    "base",
    ["", " ", " javascript:x", "java\tscript:x", "data:text/html,x", "localhost:8000/v", "https:", "http://", "C:/v"],
)
def test_addresses_that_are_none(base):
    with pytest.raises(MomentseekError, match="is not an address of videos"):
        check_address(base)
    with pytest.raises(MomentseekError, match="is not an address of videos"):
        build_tasks([PAIR], base)


@pytest.mark.parametrize("base", ["HTTPS://example.org", "file:///v", "/", "videos", "/data/local-files/?d=a:b"])
def test_addresses_and_paths(base):
    check_address(base)
