"""Pooling runs, having a model judge the pool over HTTP, and calibrating it on people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from colour_model import ColourModel

from momentseek import Judgements, Run, evaluate
from momentseek.benchmarks.asking.endpoint import EndpointSettings
from momentseek.benchmarks.datasets.annotation.candidates import read_candidates, write_candidates
from momentseek.benchmarks.datasets.annotation.labels import read_labels
from momentseek.benchmarks.datasets.annotation.model_judge import build_judgements
from momentseek.benchmarks.datasets.annotation.pooling import build_pool
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_truth, write_run, write_truth


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """The pool of two runs: green (4–8 s), half of it green, and red."""
    truth = Judgements.from_groups(
        ["g"], [1], ["park"], [9], [11], [0], queries=["a green lawn"], durations={"park": 12.0}
    )
    write_truth(truth, tmp_path / "truth.jsonl")
    for name, spans in {"one": [(4, 8), (0, 2)], "two": [(4.2, 8), (2, 6), (9, 11)]}.items():
        n = len(spans)
        run = Run.from_groups(["g"], [n], ["park"] * n, [s for s, _ in spans], [e for _, e in spans])
        write_run(run, tmp_path / f"{name}.jsonl")
    built = build_pool(
        [str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")],
        str(tmp_path / "truth.jsonl"),
        str(tmp_path / "pool.jsonl"),
    )
    built.write()
    return tmp_path / "pool.jsonl"


def test_a_pool_holds_every_moment_once_and_none_that_was_judged(pool: Path) -> None:
    pairs = read_candidates(pool)
    assert [(p.start, p.end, p.rank) for p in pairs] == [(4.0, 8.0, 1), (0.0, 2.0, 2), (2.0, 6.0, 2)]
    assert pairs[0].pair_id == "g/park@4-8"
    assert (pairs[0].query, pairs[0].duration) == ("a green lawn", 12.0)


def test_a_model_that_sees_judges_the_pool(
    model: ColourModel, settings: EndpointSettings, media: Path, pool: Path, tmp_path: Path
) -> None:
    built = build_judgements(
        str(pool), str(media), str(tmp_path / "labels.csv"), settings, truth=str(tmp_path / "judged.jsonl")
    )
    built.write()
    labels = read_labels(tmp_path / "labels.csv")
    assert labels.workers == ("model:eye-1",)
    assert dict(zip(labels.pair_ids, labels.relevance.tolist(), strict=True)) == {
        "g/park@4-8": 4,
        "g/park@0-2": 0,
        "g/park@2-6": 2,
    }
    assert "4 perfect: All the query's actions happen" in model.asked[0]["messages"][0]["content"][-1]["text"]
    assert built.summary["usage"]["prompt_tokens"] > 0
    assert not (tmp_path / "labels.csv.partial.jsonl").exists()
    truth = read_truth(tmp_path / "judged.jsonl")
    assert truth.columns["judge"] == ("model:eye-1",) * 3
    notes = evaluate(Run.from_rows([("g", "park", 4, 8, 1.0)]), truth).notes
    assert any("all moments were judged by model:eye-1, none by people" in note for note in notes)


def test_a_mixture_of_judges_is_said(tmp_path: Path) -> None:
    rows = [
        {"query_id": "g", "video": "park", "start": 0, "end": 2, "relevance": 1},
        {"query_id": "g", "video": "park", "start": 4, "end": 8, "relevance": 4, "judge": "model:eye-1"},
    ]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    truth = read_truth(tmp_path / "mixed.jsonl")
    assert truth.columns["judge"] == ("", "model:eye-1")
    write_truth(truth, tmp_path / "again.jsonl")
    assert read_truth(tmp_path / "again.jsonl").columns == truth.columns
    note = "judgements are mixed: 1 of 2 moments were judged by model:eye-1, the others by people"
    assert any(note in found for found in evaluate(Run.from_rows([("g", "park", 4, 8, 1.0)]), truth).notes)


def test_answers_without_a_level_are_counted(
    model: ColourModel, settings: EndpointSettings, media: Path, pool: Path, tmp_path: Path
) -> None:
    said = json.dumps({"choices": [{"message": {"content": "Somewhere between 2 and 3."}}]}).encode()
    model.plan += [(200, said), (400, b"{}")]
    alone = EndpointSettings(settings.base_url, settings.model, jobs=1)
    built = build_judgements(str(pool), str(media), str(tmp_path / "labels.csv"), alone)
    built.write()
    assert built.summary["unjudged"] == {"no level in the answer": 1, "the request failed": 1}
    assert len(read_labels(tmp_path / "labels.csv")) == 1
    assert (tmp_path / "labels.csv.partial.jsonl").exists()  # for the one that failed


def test_the_commands_from_pool_to_calibration(
    momentseek: Any, model: ColourModel, media: Path, pool: Path, tmp_path: Path
) -> None:
    done = momentseek(
        "data",
        "pool",
        "one.jsonl",
        "two.jsonl",
        "-t",
        "truth.jsonl",
        "--out",
        "p.jsonl",
        "--report",
        "r.jsonl",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "3 moments to judge, from the first 10 of 2 runs" in done.stdout
    given = ["--media", media, "--base-url", model.url, "--model", "eye-1"]
    done = momentseek("data", "judge", "p.jsonl", *given, "--out", "labels.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "people.csv").write_text(
        "pair_id,worker,relevance\ng/park@4-8,ann,4\ng/park@4-8,bob,3\ng/park@0-2,ann,0\ng/park@2-6,ann,1\n"
    )
    done = momentseek("data", "calibrate", "labels.csv", "people.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "model:eye-1 against people: 3 pairs of 1 query" in done.stdout
    refused = momentseek("data", "consensus", "labels.csv", cwd=tmp_path)
    assert "has labels of model:eye-1, which is a model" in refused.stderr
    swapped = momentseek("data", "calibrate", "people.csv", "labels.csv", cwd=tmp_path)
    assert "expected the labels of one model, found those of ann, bob" in swapped.stderr


def test_whole_videos_cannot_be_pooled(tmp_path: Path) -> None:
    write_run(Run.from_groups(["g"], [1], ["park"], [0], [0], task="VR"), tmp_path / "vr.jsonl")
    write_truth(Judgements.from_rows([("g", "park", 0, 1, 1)]), tmp_path / "t.jsonl")
    with pytest.raises(MomentseekError, match="ranks whole videos"):
        build_pool([str(tmp_path / "vr.jsonl")], str(tmp_path / "t.jsonl"), str(tmp_path / "p.jsonl"))


def test_candidates_written_and_read(pool: Path) -> None:
    assert write_candidates(read_candidates(pool)) == pool.read_bytes()
