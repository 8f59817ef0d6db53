"""The page's small functions, against what the package itself does."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from momentseek.media.edit_lists import frame_at, timecode


@pytest.fixture
def call(served: Any, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """``call("format.js", "clock", 83.4)``: what a function of a module gives."""
    page = open_page(served.address + "js/format.js")  # shown as text: nothing of the page itself runs

    def run(module: str, name: str, *given: Any) -> Any:
        script = "([module, name, given]) => import(module).then((m) => m[name](...given))"
        return page.evaluate(script, [f"/js/{module}", name, list(given)])

    return run


def test_timecodes_are_those_of_the_edit_lists(call: Callable[..., Any]) -> None:
    for rate in ("25/1", "24000/1001", "30000/1001", "60/1", "20/1"):
        exact = Fraction(rate)
        for seconds in (0.0, 0.02, 1.0, 59.999, 61.4, 3599.5, 3661.234):
            code = call("format.js", "timecode", seconds, call("format.js", "rateOf", rate))
            assert code == timecode(frame_at(seconds, exact), exact), (rate, seconds)


def test_times_read_like_a_clock(call: Callable[..., Any]) -> None:
    cases = {(83.456,): "1:23.5", (83.456, 0): "1:23", (59.96,): "1:00.0", (3600,): "1:00:00.0", (-1,): "0:00.0"}
    assert {given: call("format.js", "clock", *given) for given in cases} == cases


def test_links_say_what_they_were_made_of(call: Callable[..., Any]) -> None:
    query = 'a & b = "c" #1 % é 字'
    link = call("address.js", "momentLink", 7, [1.0000001, 2.3456789], query)
    assert link.startswith("#v=7&t=1,2.346&q=")
    found = call("address.js", "parse", link)
    assert (found["view"], found["video"], found["span"], found["query"]) == ("player", 7, [1, 2.346], query)
    link = call(
        "address.js", "momentLink", 7, [1, 2], "x", {"localiser": "contrast", "streams": "vision,name", "k": 20}
    )
    assert link == "#v=7&t=1,2&q=x&localiser=contrast&streams=vision%2Cname"
    found = {"localiser": "contrast", "fusion": "", "streams": "vision,name", "rerank": ""}
    assert call("address.js", "parse", link)["settings"] == found
    link = call("address.js", "momentLink", 7, [1, 2], "x", {"rerank": "a model", "rerank_videos": 5})
    assert link == "#v=7&t=1,2&q=x&rerank=a%20model"
    assert call("address.js", "parse", link)["settings"]["rerank"] == "a model"


def test_settings_in_words_and_without_what_is_usual(call: Callable[..., Any]) -> None:
    status = {
        "localisers": ["contrast", "scenes"], "localiser": "scenes", "fusions": ["rrf", "scores"], "fusion": "rrf",
        "encoders": ["labels"], "streams": ["vision", "speech", "name"],
    }  # fmt: skip
    given = {"localiser": "scenes", "fusion": "scores", "encoder": "none", "streams": "name,vision"}
    known = {"localiser": "", "fusion": "scores", "rerank": "", "encoder": "", "streams": "vision,name"}
    assert call("settings.js", "validSettings", status, given) == known
    assert call("settings.js", "describeSettings", status, given) == (
        "localiser scenes, fusion scores, encoder labels; searching what is seen and file names"
    )
    assert call("settings.js", "describeSettings", {**status, "fusions": None, "encoders": None}, {}) == (
        "localiser scenes; searching what is seen, what is said, and file names"
    )


def test_reranking_model_is_offered_if_served_and_left_out_of_evaluation(call: Callable[..., Any]) -> None:
    status = {
        "localisers": ["scenes"], "localiser": "scenes", "fusions": ["rrf"], "fusion": "rrf", "encoders": ["labels"],
        "streams": ["vision", "speech", "name"], "rerankers": ["films-tan2d", "nothing"],
    }  # fmt: skip
    for name, known in (("films-tan2d", "films-tan2d"), ("nothing", "nothing"), ("other", ""), ("", "")):
        assert call("settings.js", "validSettings", status, {"rerank": name})["rerank"] == known
        assert "rerank" not in call("settings.js", "evaluationSettings", status, {"rerank": name})
        assert call("settings.js", "describeSettings", status, {"rerank": name}) == (
            "localiser scenes, fusion rrf, encoder labels; "
            "searching what is seen, what is said, and file names; without re-ranking"
        )


def test_times_that_make_no_sense_are_left_out(call: Callable[..., Any]) -> None:
    for times in ("5,3", "a,b", "1", "-1,2", "1,Infinity"):
        assert call("address.js", "parse", f"#v=7&t={times}")["span"] is None, times


def test_hints_fit_what_is_typed(call: Callable[..., Any]) -> None:
    cases = {
        "said:do": "said:dog", 'a "good': '"good boy"', "a dog": "", "in:holi": "in:holiday*", "5:30": "",
        "well-known": "", "a -leash": "-leash", "2:dog": "2:dog 0.5:park", "before:20": "after:2023",
    }  # fmt: skip
    found = {text: call("hints.js", "hintFor", text, len(text)).split("  ")[0] for text in cases}
    assert found == cases


def test_a_curve_is_drawn_between_its_edges(call: Callable[..., Any]) -> None:
    path = call("curve.js", "outline", [0, 1, 2, 3], [0, 1, 0.5], 1, 3)
    assert path == "M0.0 100L0.0 0.0L500.0 0.0L500.0 50.0L1000.0 50.0L1000.0 100Z"
    assert call("curve.js", "outline", [0, 1, 2], [0, 1], 0, 2, 1) == "M0.0 100L0.0 0.0L1000.0 0.0L1000.0 100Z"
    assert call("curve.js", "scaleValues", "vision", [0.2, 0.4, 0.3]) == pytest.approx([0.04, 1.0, 0.52])
    assert call("curve.js", "scaleValues", "speech", [0, 0.5, 1.2]) == [0, 0.5, 1]
