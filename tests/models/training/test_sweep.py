from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.measuring.resampling import spread
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.session import score_spreads, train_seeds
from momentseek.models.training.sweep import markdown_text, sweep_cells, table_rows, write_tables


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_mean_and_sd(values: list[float]) -> None:
    found = spread(values)
    assert found.mean == pytest.approx(mean(values), abs=1e-9)
    assert found.sd == pytest.approx(stdev(values), abs=1e-9)


def test_one_run_has_no_sd() -> None:
    assert math.isnan(spread([0.25]).sd)
    assert str(spread([0.25])) == "0.2500"


def test_every_combination_has_its_folder(tmp_path: Path) -> None:
    found = sweep_cells(
        {}, ["xml", "reloclnet"], ["train_top01", "train_top40"], ["kernel=1,5"], ["hidden=8"], tmp_path
    )
    assert len(found) == 8
    assert found[1].labels == {"model": "xml", "train": "train_top01", "kernel": "5"}
    assert found[1].folder == tmp_path / "xml" / "train_top01" / "kernel=5"
    assert {c.config.model_config.hidden for c in found} == {8}
    first = sweep_cells({}, ["excl"], ["s"], [], ["first_stage=runs/xml/{train}/seed-0"], tmp_path)[0]
    assert first.config.data.first_stage == "runs/xml/s/seed-0"


@pytest.mark.parametrize(
    ("preset", "varied", "settings", "split"),
    [
        ({"data": {"train": "of-preset"}}, [], [], "of-preset"),
        ({}, [], [], "train"),
        ({}, [], ["train=of-{model}"], "of-excl"),
        ({}, ["train=varied"], [], "varied"),
    ],
    ids=["preset", "default", "set", "varied"],
)
def test_the_training_split_is_known_however_it_is_named(
    preset: dict[str, object], varied: list[str], settings: list[str], split: str, tmp_path: Path
) -> None:
    first = f"first_stage={tmp_path}/xml/{{train}}/seed-0"
    found = sweep_cells(preset, ["excl"], [], varied, [first, *settings], tmp_path)[0]
    assert found.config.data.train == split
    assert found.config.data.first_stage == str(tmp_path / "xml" / split / "seed-0")


def test_mistakes_are_said_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="varies nothing"):
        sweep_cells({}, ["xml"], [], ["kernel"], [], tmp_path)
    with pytest.raises(MomentseekError, match="one combination twice"):
        sweep_cells({}, ["xml", "xml"], [], [], [], tmp_path)
    with pytest.raises(MomentseekError, match="no setting 'kernle'"):
        sweep_cells({}, ["xml"], [], ["kernle=1,2"], [], tmp_path)


def test_seeds_are_trained_once_and_tabulated(corpus: Data, config: TrainConfig, tmp_path: Path) -> None:
    short = config.with_changes(["steps=2"])
    steps: list[int] = []

    def tell(progress: TrainingProgress) -> None:
        steps.append(progress.step)

    reports = train_seeds(short, corpus, tmp_path, 2, progress=tell).reports
    assert [r["seed"] for r in reports] == [0, 1]
    steps.clear()
    assert train_seeds(short, corpus, tmp_path, 2, progress=tell).reports == reports
    assert steps == []  # finished runs are not trained again
    assert train_seeds(short, corpus, tmp_path, 3, progress=tell).reports[:2] == reports
    assert steps

    cell = sweep_cells(short.table(), ["xml"], [], [], [], tmp_path)[0]
    name = "NDCG@20[IoU>=0.5]"
    values = [r["scores"]["val"][name] for r in reports]
    write_tables(tmp_path, [(cell, reports)], [name], "a simulation")
    with (tmp_path / "table.csv").open(newline="") as f:
        row = next(csv.DictReader(f))
    assert float(row[f"val {name}"]) == pytest.approx(mean(values))
    assert float(row[f"val {name} sd"]) == pytest.approx(stdev(values))
    assert json.loads((tmp_path / "table.json").read_text())["rows"] == table_rows([(cell, reports)])
    text = (tmp_path / "table.md").read_text()
    assert text.startswith("a simulation\n\n| model |")
    assert str(score_spreads(reports)["val"][name]) in text
    assert text == markdown_text([(cell, reports)], [name], "a simulation")
