"""Answers of language models in prose, each with what it means (``prose_answers.jsonl``)."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.measuring.answers.reading import REASONS, parse_answer, report_answers
from momentseek.measuring.answers.times import Clip

EXAMPLES = [
    json.loads(line) for line in Path(__file__).with_name("prose_answers.jsonl").read_text("utf-8").splitlines()
]


def clip_of(example: dict[str, Any]) -> Clip:
    return Clip(example.get("duration"), example.get("fps"), example.get("units", "seconds"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["meaning"])
def test_every_example_means_what_its_row_says(example: dict[str, Any]) -> None:
    found = parse_answer(example["answer"], clip_of(example))
    assert [[round(s.start, 4), round(s.end, 4)] for s in found.spans] == [
        [round(start, 4), round(end, 4)] for start, end in example["spans"]
    ]
    assert found.reason == example["reason"]


def test_there_are_at_least_two_hundred_examples_of_every_kind() -> None:
    assert len(EXAMPLES) >= 200
    assert len({example["answer"] + str(clip_of(example)) for example in EXAMPLES}) == len(EXAMPLES)
    assert set(Counter(example["reason"] for example in EXAMPLES)) == set(REASONS) - {"failed"}


@given(st.text(max_size=400), st.one_of(st.none(), st.floats(1, 1e5)))
def test_no_text_is_an_error_and_every_span_is_possible(text: str, duration: float | None) -> None:
    found = parse_answer(text, Clip(duration))
    assert found.reason in REASONS
    assert bool(found.spans) == (found.reason == "answered")
    for span in found.spans:
        assert 0 <= span.start < span.end <= (duration or math.inf)


WORDS = (
    "from",
    "to",
    "12",
    "0:20",
    "1:02:03",
    "s",
    "seconds",
    "and",
    "between",
    "[",
    "]",
    "{",
    "}",
    '"start":',
    '"end":',
)
MORE_WORDS = (
    ",",
    "-",
    "-5",
    "1,5",
    "no dog appears",
    "%",
    "frame",
    "30",
    "ends",
    "starts",
    "at",
    "the end",
    "not",
    "video",
    "\n",
    "<t5>",
    "<|3.0|>",
)


@given(st.lists(st.sampled_from((*WORDS, *MORE_WORDS)), max_size=60))
def test_no_row_of_time_words_is_an_error(some: list[str]) -> None:
    found = parse_answer(" ".join(some), Clip(60.0, 25.0))
    assert all(0 <= span.start < span.end <= 60 for span in found.spans)


@pytest.mark.parametrize(
    "loop",
    [
        "seconds ",
        "[",
        "{'a':",
        "from 1 to ",
        "1:",
        "between ",
        "<TIME_ONE>",
        "12s to 20s ",
        "the at about ",
        "<think>",
        "9" * 40,
        "1,5 ",
        "not 1-2, ",
        "there is no 1-2 ",
        "-1'05 ",
        "1/2 ",
        "<time>1</time>",
    ],
)
def test_a_model_that_loops_costs_no_time(loop: str) -> None:
    began = time.process_time()
    parse_answer(loop * (200_000 // len(loop)), Clip(60.0))
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        ('[{"segment": [12.0, 20.0], "score": 0.9}, {"segment": [40, 44], "score": 0.3}]', [0.9, 0.3]),
        ("from 12s to 20s, confidence: 85%", [0.85]),
        ('{"start": 1, "end": 2, "confidence": 90}', [0.9]),
        ("from 12s to 20s", [None]),
    ],
)
def test_a_confidence_is_kept_where_the_answer_gives_one(answer: str, scores: list[float | None]) -> None:
    found = [None if math.isnan(span.confidence) else span.confidence for span in parse_answer(answer).spans]
    assert found == scores


def test_what_was_cut_or_left_out_is_said() -> None:
    clip = Clip(60.0)
    assert parse_answer("from 50s to 75s", clip).notes == ("a span cut at the end of the video",)
    assert parse_answer("from 20s to 12s, or from 30s to 35s", clip).notes == ("a reversed span left out",)
    assert parse_answer("not from 12s to 20s but from 30s to 35s", clip).notes == ("a denied span left out",)
    assert parse_answer("throughout the video", clip).notes == ("the whole video",)


def test_a_report_counts_every_answer_once() -> None:
    parsed = [parse_answer(example["answer"], clip_of(example)) for example in EXAMPLES]
    report = report_answers([example["answer"] for example in EXAMPLES], parsed, "examples")
    assert sum(report.reasons.values()) == report.answers == len(EXAMPLES)
    assert report.reasons == {r: n for r in REASONS if (n := sum(e["reason"] == r for e in EXAMPLES))}
    assert "refusal" in report.as_text()
