from __future__ import annotations

import csv
from pathlib import Path

from momentseek.models.training.folder import TrainingLog


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open(newline="") as f:
        return list(csv.DictReader(f))


def test_rows_may_have_new_columns(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path)
    log.log(1, {"loss": 2.5})
    log.log(2, {"loss": 1.5})
    log.log(2, {"val/NDCG@20[IoU>=0.5]": 0.25})
    assert rows(tmp_path) == [
        {"step": "1", "loss": "2.5", "val/NDCG@20[IoU>=0.5]": ""},
        {"step": "2", "loss": "1.5", "val/NDCG@20[IoU>=0.5]": ""},
        {"step": "2", "loss": "", "val/NDCG@20[IoU>=0.5]": "0.25"},
    ]


def test_going_on_forgets_later_rows(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path)
    for step in range(1, 6):
        log.log(step, {"loss": step})
    with (tmp_path / "log.csv").open("a") as f:
        f.write("6,")  # killed while writing
    again = TrainingLog(tmp_path, 3)
    again.log(4, {"loss": 40})
    assert [(r["step"], r["loss"]) for r in rows(tmp_path)] == [("1", "1"), ("2", "2"), ("3", "3"), ("4", "40")]
