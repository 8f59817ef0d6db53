"""Ask a model over HTTP for moments: requests, answers, and resuming after a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from colour_model import ColourModel

from momentseek import Judgements, evaluate
from momentseek.benchmarks.asking.endpoint import EndpointSettings
from momentseek.benchmarks.asking.frames import FrameBudget
from momentseek.benchmarks.asking.grounding import GroundingOptions, ask_moments
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_run, write_truth


def test_model_finds_the_moment_and_reports_absence(
    model: ColourModel, settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path
) -> None:
    found = ask_moments(truth, media, tmp_path / "answers.jsonl", settings)
    assert found.report.reasons == {"answered": 2, "absent": 1}
    result = evaluate(
        tmp_path / "answers.jsonl", truth, ["R@1[IoU>=0.7]", "FalseAlarm", "FalseRejection"], missing="zero"
    )
    assert result.values[0, 0] == result.values[1, 0] == 1.0
    assert (result["FalseAlarm"], result["FalseRejection"]) == (0.0, 0.0)
    run = read_run(tmp_path / "answers.jsonl")
    assert run.score.tolist() == [0.9, 0.9]
    # 12, 6 and 6 frames at one a second, 100 tokens each and 20 for the words; the price is per million
    assert (found.usage.requests, found.usage.failed) == (3, 0)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (2460, 90)
    assert found.usage.cost == pytest.approx((2460 * 1 + 90 * 10) / 1e6)
    assert not (tmp_path / "answers.jsonl.partial.jsonl").exists()


def test_what_is_sent_keeps_to_the_budget(
    model: ColourModel, settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path
) -> None:
    budget = FrameBudget(frames=4, long_side=64)
    ask_moments(truth, media, tmp_path / "a.jsonl", settings, GroundingOptions(budget, "seconds", limit=1))
    (body,) = model.asked
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("eye-1", 0.0, 512)
    content = body["messages"][0]["content"]
    times = [part["text"] for part in content if part["type"] == "text"][:-1]
    assert len(times) == 4
    assert [
        abs(float(t.split()[2]) - middle) < 0.8 for t, middle in zip(times, (1.5, 4.5, 7.5, 10.5), strict=True)
    ] == [True] * 4
    assert set(model.sizes) == {(64, 38)}
    assert "a green lawn" in content[-1]["text"]
    assert "12.0 seconds" in content[-1]["text"]


def test_a_stop_loses_no_answer(
    model: ColourModel, settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt):
        ask_moments(truth, media, out, replace(settings, jobs=1), progress=stop)
    assert not out.exists()
    partial = tmp_path / "answers.jsonl.partial.jsonl"
    partial.write_bytes(partial.read_bytes() + b'{"id": "none", "digest": "torn')  # killed while writing
    before = len(model.asked)
    ask_moments(truth, media, out, replace(settings, jobs=1))
    asked_again = [body["messages"][0]["content"][-1]["text"] for body in model.asked[before:]]
    assert len(asked_again) == 1
    assert [json.loads(line)["query_id"] for line in out.read_text().splitlines()] == ["g", "b", "none"]


def test_another_question_is_asked_anew(
    model: ColourModel, settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_moments(truth, media, tmp_path / "a.jsonl", replace(settings, jobs=1), progress=stop)
    before = len(model.asked)
    mine = tmp_path / "prompt.txt"
    mine.write_text("When is there {query}? Answer in JSON.")
    ask_moments(truth, media, tmp_path / "a.jsonl", settings, GroundingOptions(prompt=str(mine)))
    assert len(model.asked) - before == 3


def test_a_request_that_fails_is_counted_and_asked_again(
    model: ColourModel, settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path
) -> None:
    model.plan.append((400, b'{"error": {"message": "picture 3 is not allowed"}}'))
    out = tmp_path / "answers.jsonl"
    found = ask_moments(truth, media, out, replace(settings, jobs=1))
    assert (found.usage.requests, found.usage.failed, found.report.reasons["failed"]) == (2, 1, 1)
    row = json.loads(out.read_text().splitlines()[0])
    assert "picture 3 is not allowed" in row["error"]
    assert read_run(out).counts.tolist() == [0, 1, 0]
    before = len(model.asked)
    again = ask_moments(truth, media, out, replace(settings, jobs=1))
    assert (len(model.asked) - before, again.usage.failed) == (1, 0)


def test_a_wrong_key_ends_at_once(
    model: ColourModel, settings: EndpointSettings, media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOMENTSEEK_CHAT_KEY", "secret-key")
    model.plan += [(401, b'{"error": {"message": "wrong key secret-key"}}')] * 20
    many = Judgements.from_groups(
        list(range(20)), [1] * 20, ["sea"] * 20, [0] * 20, [6] * 20, queries=[f"blue {i}" for i in range(20)]
    )
    with pytest.raises(MomentseekError, match=r"5 requests in a row failed.*HTTP 401 \(wrong key …\)"):
        ask_moments(many, media, tmp_path / "a.jsonl", replace(settings, jobs=1))
    assert set(model.keys) == {"Bearer secret-key"}
    assert len(model.asked) < 10


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"videos": ["lake", "sea", "sea"]}, "has no video 'lake'"),
        ({"queries": None}, "its queries have no words"),
    ],
)
def test_what_cannot_be_asked(
    settings: EndpointSettings, media: Path, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    columns = {"videos": ["park", "sea", "sea"], "queries": ["a", "b", "c"]} | change
    truth = Judgements.from_groups(
        ["1", "2", "3"], [1, 1, 1], columns["videos"], [0] * 3, [1] * 3, queries=columns["queries"]
    )
    with pytest.raises(MomentseekError, match=sentence):
        ask_moments(truth, media, tmp_path / "a.jsonl", settings)


def test_a_query_without_a_video(settings: EndpointSettings, media: Path, tmp_path: Path) -> None:
    bare = Judgements.from_groups(["1"], [0], [], [], [], queries=["a zebra"])
    with pytest.raises(MomentseekError, match="query 1 names no video to ask about"):
        ask_moments(bare, media, tmp_path / "a.jsonl", settings)


@pytest.mark.parametrize(
    ("text", "sentence"), [("no place", "has no place for the query"), ("{query} {0}", "write braces only as")]
)
def test_prompts_that_cannot_be_used(
    settings: EndpointSettings, media: Path, truth: Judgements, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(MomentseekError, match=sentence):
        ask_moments(truth, media, tmp_path / "a.jsonl", settings, GroundingOptions(prompt=str(tmp_path / "p.txt")))


def test_the_command(momentseek: Any, model: ColourModel, media: Path, truth: Judgements, tmp_path: Path) -> None:
    write_truth(truth, tmp_path / "truth.jsonl")
    given = ["--media", media, "--base-url", model.url, "--model", "eye-1", "--price", "1,10"]
    done = momentseek("ask", "truth.jsonl", *given, "--out", "eye.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "eye.jsonl: 3 answers, 2 moments" in done.stdout
    assert "cost 0.0034" in done.stderr
    assert momentseek("ask", "truth.jsonl", *given, "--out", "eye.jsonl", cwd=tmp_path).returncode == 2  # it is there
    given[-1] = "cheap"
    assert "give two numbers" in momentseek("ask", "truth.jsonl", *given, "--out", "e.jsonl", cwd=tmp_path).stderr
