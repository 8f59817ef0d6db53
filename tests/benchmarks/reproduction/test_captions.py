"""Tables of captions: figures that are not means, and feature columns chosen for a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.benchmarks.reproduction.paper_table import PaperTable, read_table
from momentseek.benchmarks.reproduction.result import TableResult, caption_cell
from momentseek.benchmarks.reproduction.session import reproduce_table
from momentseek.core.errors import MomentseekError
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import parse
from momentseek.measuring.measures.captions.measure import CaptionMeasure
from momentseek.models.training.captions import describe_split

SMALL: dict[str, Any] = {"videos": 30, "queries": 40, "video_dim": 16, "text_dim": 8, "steps": 6, "validations": 2}


@pytest.fixture(scope="module")
def table() -> PaperTable:
    found = read_table("tvr-12")
    rows = {
        "resnet": replace(found.rows["resnet"], simulated={"columns": "0:8"}),
        "both": found.rows["both"],
    }
    return replace(found, rows=rows, simulation={**found.simulation, **SMALL})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captions")


@pytest.fixture(scope="module")
def result(table: PaperTable, out: Path) -> TableResult:
    found = reproduce_table(table, out=out, seeds=2)
    assert found is not None
    return found


def test_figures_of_all_captions_together_are_the_evaluators(result: TableResult, out: Path) -> None:
    (data,) = (out / "data").iterdir()
    names = ["BLEU@4", "ROUGE-L", "CIDEr-D"]
    labels = [result.columns.index(label) for label in ("B@4", "Rouge-L", "CIDEr-D")]
    found = set()
    for run in sorted((out / "runs").iterdir()):
        captions = describe_split(run, data, "tvc_val").captions
        found.add(
            tuple(
                round(100 * v, 6)
                for v in evaluate(captions, data / "tvc_val_release.jsonl", names, protocol="tvc").means.values()
            )
        )
    shown = {tuple(round(row.cells[i].seeds[seed], 6) for i in labels) for row in result.rows for seed in (0, 1)}
    assert shown == found


def test_only_means_have_letters(result: TableResult) -> None:
    for row in result.rows:
        assert [bool(cell.letters) for cell in row.cells][::2] == [False, True]
        assert row.cells[3].letters


def test_it_is_read_again_and_a_given_run_is_checked(result: TableResult, table: PaperTable, out: Path) -> None:
    again = reproduce_table(table, out=out, seeds=2)
    assert again is not None
    assert again.as_json() == result.as_json()
    (data,) = (out / "data").iterdir()
    (part, _, run, _) = sorted(
        (out / "runs").iterdir(), key=lambda run: 'columns = ""' in (run / "config.toml").read_text()
    )
    taken = reproduce_table(table, data=data, out=out, rows=["both"], finished={"both": [run]})
    assert taken is not None
    assert len(taken.rows[0].cells[0].seeds) == 1
    with pytest.raises(MomentseekError, match=r"^row both: .* has columns 0:8, not none; give another run"):
        reproduce_table(table, data=data, out=out, finished={"both": [part]})
    wrong = replace(table, rows={"both": replace(table.rows["both"], settings={"data.train": "tvc_val"})})
    with pytest.raises(MomentseekError, match="has the training split tvc_train, not tvc_val"):
        reproduce_table(wrong, data=data, out=out, finished={"both": [run]})


def test_the_interval_of_a_figure_that_is_no_mean_holds_it() -> None:
    measure = parse("BLEU@1")
    assert isinstance(measure, CaptionMeasure)
    rng = np.random.default_rng(0)
    words = rng.integers(4, 9, (40, 1))
    parts = [np.hstack([words, words, rng.integers(0, 5, (40, 1)), words]).astype(float) for _ in range(2)]
    cell = caption_cell(parts, measure, 50.0, percent=True, clusters=None)
    assert cell.seeds == pytest.approx([100 * p[:, 2].sum() / p[:, 3].sum() for p in parts])
    assert cell.low < cell.ours.mean < cell.high
