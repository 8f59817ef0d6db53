"""``momentseek answers``, and a model's answers as a system in ``evaluate`` and ``compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from momentseek import Judgements
from momentseek.measuring.formats import read_run, write_truth

ANSWERS = [
    {"query_id": "q1", "video": "v1", "duration": 60.0, "answer": "From 12s to 20s."},
    {"query_id": "q2", "video": "v2", "duration": 60.0, "answer": "There is no zebra in the video."},
    {"query_id": "q3", "video": "v3", "duration": 60.0, "answer": "I'm sorry, I can't watch videos."},
    {"query_id": "q4", "video": "v4", "duration": 60.0, "answer": "from 20 to 30"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ANSWERS))
    truth = Judgements.from_rows(
        [("q1", "v1", 12, 20, 1), ("q2", "v2", 0, 60, 0), ("q3", "v3", 5, 9, 1), ("q4", "v4", 12, 18, 1)]
    )
    write_truth(truth, tmp_path / "truth.jsonl")
    return tmp_path


def test_answers_are_counted_by_reason_and_written_as_a_run(momentseek: Any, folder: Path) -> None:
    done = momentseek("answers", "answers.jsonl", "--out", "run.jsonl", "--table", cwd=folder)
    assert done.returncode == 0
    assert "answers.jsonl: 4 answers, 2 moments" in done.stdout
    assert "12–20 s" in done.stdout
    run = read_run(folder / "run.jsonl")
    assert (run.query_ids, run.counts.tolist()) == (("q1", "q2", "q3", "q4"), [1, 0, 0, 1])


def test_units_of_the_model(momentseek: Any, folder: Path) -> None:
    done = momentseek("answers", "answers.jsonl", "--units", "percent", "--json", "--table", cwd=folder)
    found = json.loads(done.stdout)
    assert found["reasons"] == {"answered": 2, "absent": 1, "refusal": 1}
    assert found["table"][3]["means"] == "12–18 s"


def test_answers_are_accepted_as_a_system(momentseek: Any, folder: Path) -> None:
    done = momentseek("evaluate", "answers.jsonl", "-t", "truth.jsonl", "-m", "mIoU", "-m", "FalseAlarm", cwd=folder)
    assert (done.returncode, "count such queries as 0 (--missing zero)" in done.stderr) == (2, True)
    done = momentseek(
        "evaluate", "answers.jsonl", "-t", "truth.jsonl", "--missing", "zero", "--json",
        "-m", "mIoU", "-m", "FalseAlarm", "-m", "FalseRejection", cwd=folder,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["measures"] == {"mIoU": 0.25, "FalseAlarm": 0.0, "FalseRejection": pytest.approx(1 / 3)}
    assert any("1 answer with no moment (refusal) left empty (q3)" in note for note in found["notes"])
    done = momentseek(
        "compare", "answers.jsonl", "answers.jsonl", "-t", "truth.jsonl", "--missing", "zero", "-m", "mIoU", cwd=folder
    )
    assert done.returncode == 0
