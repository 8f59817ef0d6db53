from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path

import pytest

from momentseek.models.training.folder import TrainingLog


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open(newline="") as f:
        return list(csv.DictReader(f))


def test_rows_may_have_new_columns(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path)
    log.add(1, {"loss": 2.5})
    log.add(2, {"loss": 1.5})
    log.add(2, {"val/NDCG@20[IoU>=0.5]": 0.25})
    log.close()
    assert rows(tmp_path) == [
        {"step": "1", "loss": "2.5", "val/NDCG@20[IoU>=0.5]": ""},
        {"step": "2", "loss": "1.5", "val/NDCG@20[IoU>=0.5]": ""},
        {"step": "2", "loss": "", "val/NDCG@20[IoU>=0.5]": "0.25"},
    ]


def test_going_on_forgets_later_rows(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path)
    for step in range(1, 6):
        log.add(step, {"loss": step})
    log.close()
    with (tmp_path / "log.csv").open("a") as f:
        f.write("6,")  # killed while writing
    again = TrainingLog(tmp_path, 3)
    again.add(4, {"loss": 40})
    again.close()
    assert [(r["step"], r["loss"]) for r in rows(tmp_path)] == [("1", "1"), ("2", "2"), ("3", "3"), ("4", "40")]


def test_tensorboard_reads_our_events(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = TrainingLog(tmp_path)
    for step in (1, 2, 300_000):
        first.add(step, {"loss/span": step / 2, "lr": 1e-4})
    first.close()
    second = TrainingLog(tmp_path, 2)
    second.add(3, {"loss/span": -7.25})
    second.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = accumulator.EventAccumulator(str(tmp_path))
        found.Reload()
    assert found.Tags()["scalars"] == ["loss/span", "lr"]
    # what was logged from step 2 on is forgotten, as training went on from there
    assert [(e.step, e.value) for e in found.Scalars("loss/span")] == [(1, 0.5), (3, -7.25)]
    assert found.Scalars("lr")[0].value == pytest.approx(1e-4)


def test_without_tensorboard_there_is_a_table_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    log = TrainingLog(tmp_path)
    log.add(1, {"loss": 2.5})
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
