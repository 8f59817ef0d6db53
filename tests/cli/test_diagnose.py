from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    truth = [{"query_id": f"q{i}", "video": "v", "start": 10, "end": 20 + i, "relevance": 1} for i in range(6)]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(t) + "\n" for t in truth))
    for name, shift in (("one", 1), ("two", 4)):
        rows = [
            {"query_id": f"q{i}", "video": "v", "start": 10 + shift * k, "end": 18 + shift, "score": -k}
            for i in range(6)
            for k in range(2)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return tmp_path


def test_text(momentseek: Command, files: Path) -> None:
    done = momentseek("diagnose", "one.jsonl", "two.jsonl", "-t", "truth.jsonl", "-m", "R@1[IoU>=0.5]", cwd=files)
    assert done.returncode == 0, done.stderr
    assert "BROKEN" in done.stdout
    assert "all 2 runs" in done.stdout
    assert "Not run: location" in done.stdout


def test_json_and_figures(momentseek: Command, files: Path) -> None:
    done = momentseek(
        "diagnose", "one.jsonl", "two.jsonl", "-t", "truth.jsonl", "--only", "ties", "--only", "noise",
        "--noise", 0.1, "--json", "--plots", "figures", cwd=files,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["axioms"] is None
    assert found["reasons"]["axioms"] == "not asked for (--only)"
    assert found["noise"][0]["gammas"] == [0.1]
    assert (files / "figures/ties.png").exists()
    assert "wrote figures/ties.png" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-t", "truth.jsonl"], "nothing to diagnose"),
        (["one.jsonl", "-t", "truth.jsonl", "--only", "ties"], "at least two runs"),
        (["one.jsonl", "-t", "truth.jsonl", "-m", "NDGC@5"], "did you mean"),
        (["one.jsonl", "-t", "nowhere.jsonl"], "nowhere.jsonl"),
        (["one.jsonl", "-t", "truth.jsonl", "--protocol", "papr"], "did you mean 'paper'"),
    ],
)
def test_errors_are_one_sentence(momentseek: Command, files: Path, arguments: list[str], says: str) -> None:
    done = momentseek("diagnose", *arguments, cwd=files)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_help_explains_each_part(momentseek: Command) -> None:
    done = momentseek("diagnose", "--help")
    for part in ("axioms", "ties", "noise", "location", "--annotators"):
        assert part in done.stdout
