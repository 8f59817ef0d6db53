"""One small table with every kind of row, trained for a few steps: once, interrupted, and again."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from momentseek.benchmarks.reproduction.paper_table import PaperTable, parse_table
from momentseek.benchmarks.reproduction.result import TableResult, as_table, tie_cell
from momentseek.benchmarks.reproduction.session import estimate_table, reproduce_table
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.errors import MomentseekError
from momentseek.measuring.evaluate import evaluate
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.prediction import predict_split
from momentseek.models.training.session import train_or_read

MAP = {"map_layers": 1, "kernel": 3, "space": 8}
SECTIONS: dict[str, Any] = {
    "title": "A table",
    "source": "nobody",
    "task": "VCMR",
    "protocol": "mvmr",
    "percent": True,
    "simulation": {
        "like": "charades",
        "videos": 40,
        "video_dim": 12,
        "text_dim": 8,
        "pool": 4,
        "preset": "films",
        "steps": 4,
        "validations": 2,
        "settings": {
            "all": {"hidden": 8, "batch": 8, "task": "VCMR", "validate": "mvmr_val", "measure": "R@1[IoU>=0.5]"},
            "map": MAP,
            "videos": {"task": "VR", "training.measure": "R@1[task=VR]"},
        },
    },
    "columns": [
        {"label": "R@1", "split": "mvmr", "measure": "R@1[IoU>=0.3]"},
        {"label": "R@5", "split": "mvmr", "measure": "R@5[IoU>=0.3]"},
    ],
    "rows": {
        "mmn": {"model": "mmn", "use": ["map"], "paper": [12.78, 33.29]},
        "first": {"model": "crocs", "use": ["map"], "share": 0.5, "hidden": True},
        "crocs": {
            "model": "crocs",
            "use": ["map"],
            "share": 0.5,
            "begin": "first",
            "settings": {"hard_videos": 2, "hard_queries": 2},
            "paper": [17.38, None],
        },
        "mee": {"model": "mee", "use": ["videos"], "hidden": True, "simulated": {"clusters": 2}},
        "mmn-2": {"of": "mmn", "videos": "mee", "first": 2},
        "chance": {"baseline": "chance"},
    },
}


@pytest.fixture(scope="module")
def table() -> PaperTable:
    return parse_table(SECTIONS, "small")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture(scope="module")
def result(table: PaperTable, out: Path) -> TableResult:
    found = reproduce_table(table, out=out, seeds=2)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def data(result: TableResult, out: Path) -> Path:
    """The films that were made for the table."""
    (folder,) = (out / "data").iterdir()
    return folder


def test_rows_are_trained_measured_and_shown_next_to_the_paper(result: TableResult, data: Path, out: Path) -> None:
    assert [row.name for row in result.rows] == ["mmn", "crocs", "mmn-2", "chance"]
    assert result.rows[1].cells[0].paper == 17.38
    assert result.rows[1].cells[1].paper is None
    assert [len(row.cells[0].seeds) for row in result.rows] == [2, 2, 2, 5]
    assert (
        "SIMULATED DATA (simulated films, seed 0, bias 0.9), mean ± sd over 2 seeds (blind rows: 5)" in result.caption
    )
    runs = sorted((out / "runs").glob("mmn-*"))
    assert [run.name[:6] for run in runs] == ["mmn-0-", "mmn-1-"]
    means = [
        evaluate(
            predict_split(run, data, "mvmr", task="VCMR").run, data / "mvmr.json", ["R@1[IoU>=0.3]"], protocol="mvmr"
        ).means["R@1[IoU>=0.3]"]
        for run in runs
    ]
    assert [cell / 100 for cell in result.rows[0].cells[0].seeds] == pytest.approx(means)


def test_a_second_time_reads_what_the_first_one_made(result: TableResult, table: PaperTable, out: Path) -> None:
    def refuse(progress: TrainingProgress) -> None:
        raise AssertionError("it trains again")

    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    again = reproduce_table(table, out=out, seeds=2, progress=refuse)
    assert again is not None
    assert again.as_json() == result.as_json()
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before
    fewer = reproduce_table(table, out=out, seeds=1, rows=["mmn-2"], progress=refuse)
    assert fewer is not None
    assert fewer.rows[0].cells[0].seeds == result.rows[2].cells[0].seeds[:1]


def test_interrupted_it_goes_on_to_the_same_table(
    result: TableResult, table: PaperTable, data: Path, out: Path, tmp_path: Path
) -> None:
    stopped: list[str] = []

    def interrupt(progress: TrainingProgress) -> None:
        if progress.step == 1 and not stopped:
            stopped.append(progress.doing)
            signal.raise_signal(signal.SIGINT)

    assert reproduce_table(table, data=data, out=tmp_path, seeds=1, rows=["crocs"], progress=interrupt) is None
    assert stopped
    assert not (tmp_path / "scores").exists()
    gone_on = reproduce_table(table, data=data, out=tmp_path, seeds=1, rows=["crocs"])
    assert gone_on is not None
    assert gone_on.rows[0].cells[0].seeds == result.rows[1].cells[0].seeds[:1]
    assert gone_on.rows[0].cells[1].seeds == result.rows[1].cells[1].seeds[:1]


def test_finished_runs_are_taken_and_measured(
    result: TableResult, table: PaperTable, data: Path, out: Path, tmp_path: Path
) -> None:
    runs = sorted((out / "runs").glob("mmn-*"))
    taken = reproduce_table(table, data=data, out=tmp_path, rows=["mmn"], finished={"mmn": runs})
    assert taken is not None
    assert taken.rows[0].cells[0].seeds == result.rows[0].cells[0].seeds
    assert taken.rows[0].best_steps == result.rows[0].best_steps
    assert not (tmp_path / "runs").exists()


def test_other_steps_are_another_training(table: PaperTable, data: Path, tmp_path: Path) -> None:
    for steps in (1, 2):
        reproduce_table(table, data=data, out=tmp_path, seeds=1, steps=steps, rows=["mmn"])
    assert len(list((tmp_path / "runs").iterdir())) == 2


def refused(match: str, table: PaperTable, **asked: Any) -> None:
    def trained(progress: TrainingProgress) -> None:
        raise AssertionError("it began to train")

    with pytest.raises(MomentseekError, match=match):
        reproduce_table(table, seeds=1, progress=trained, **asked)


def with_row(table: PaperTable, name: str, **changes: Any) -> PaperTable:
    row = replace(table.rows[name], **changes)
    return replace(table, rows={**table.rows, name: row})


def test_impossible_training_is_refused_before_it_starts(table: PaperTable, data: Path, tmp_path: Path) -> None:
    asked = {"data": data, "out": tmp_path}
    refused("small has no row 'mnm'; did you mean", table, **asked, rows=["mnm"])
    refused("small has no row 'nobody'", table, **asked, finished={"nobody": []})
    lonely = with_row(table, "crocs", begin=None)
    refused("^row crocs: hard negatives are drawn by the scores of a trained model; name its", lonely, **asked)
    windows = with_row(table, "chance", baseline=None, model="ctrl", simulated={"windows": [64], "task": "SVMR"})
    refused("^row chance: .*window", windows, **asked)
    unknown = with_row(table, "mmn", settings={"mapp_layers": 2})
    refused("there is no setting 'mapp_layers'; did you mean", unknown, **asked)
    assert not (tmp_path / "runs").exists()


def test_features_of_another_width_are_refused_before_training(table: PaperTable, tmp_path: Path) -> None:
    folder = tmp_path / "films"
    simulate_grounding(folder, GroundingSettings(videos=40, video_dim=12, text_dim=8, pool=4))
    with h5py.File(folder / "query.h5") as old, h5py.File(folder / "other.h5", "w") as new:
        for name in old:
            new[name] = np.zeros((len(old[name]), 5), dtype=np.float32)
    toml = folder / "data.toml"
    section = "[splits.mvmr_val]\n"
    head, tail = toml.read_text().split(section)
    toml.write_text(head + section + tail.replace('"query.h5"', '"other.h5"', 1))
    refused("queries of mvmr_val have 5 columns and those of train 8", table, data=folder, out=tmp_path / "out")


def test_data_without_split_or_description_are_refused(table: PaperTable, data: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "video.h5").write_bytes(b"")
    refused("full: has no data.toml; describe its features there", table, data=tmp_path / "full", out=tmp_path)
    elsewhere = replace(table, columns=(replace(table.columns[0], split="mvrm"),))
    refused("there is no split 'mvrm'; did you mean 'mvmr'", elsewhere, data=data, out=tmp_path / "o")


def test_systems_that_never_differ_are_tied_everywhere(result: TableResult, table: PaperTable, out: Path) -> None:
    ties = replace(table, kind="ties", rows={"mmn": table.rows["mmn"], "same": replace(table.rows["mmn"], name="same")})
    found = reproduce_table(ties, out=out, seeds=1)
    assert found is not None
    assert [row.label for row in found.rows] == ["R@1", "R@5"]
    assert all(row.cells[0].ours.mean == 100.0 for row in found.rows)
    refused("choose at least two rows", ties, out=out, rows=["mmn"])


def test_caption_names_the_evaluator_and_different_settings(result: TableResult) -> None:
    assert "Measured by the protocol mvmr (MVMR's evaluator" in result.caption
    assert "MMN" not in result.differences
    assert "the paper prints no settings" in result.differences


def test_settings_of_a_paper_that_differ_are_printed(table: PaperTable, data: Path, out: Path) -> None:
    with_paper = replace(table, preset="mvmr-charades")
    found = reproduce_table(with_paper, data=data, out=out, seeds=1, rows=["mmn", "crocs"])
    assert found is not None
    assert "Differs from the paper: all rows: hidden 8 (512), " in found.caption
    assert "batch 8 (48)" in found.differences
    assert "crocs: only_overlap_after" in found.differences
    assert "4 steps (18 epochs)" in found.differences
    assert "reject" not in found.differences


def test_another_evaluator_can_be_named(table: PaperTable, data: Path, out: Path) -> None:
    found = reproduce_table(table, data=data, out=out, seeds=1, rows=["mmn"], protocol="mvmr-all")
    assert found is not None
    assert "protocol mvmr-all" in found.caption
    refused("there is no protocol 'mvmrall'; did you mean 'mvmr-all'", table, data=data, out=out, protocol="mvmrall")


def test_a_given_run_of_another_row_is_refused(table: PaperTable, data: Path, out: Path, tmp_path: Path) -> None:
    (crocs, *_) = sorted((out / "runs").glob("crocs-*"))
    asked = {"data": data, "out": tmp_path, "rows": ["mmn"], "finished": {"mmn": [crocs]}}
    refused("^row mmn: .* has the model crocs, not mmn; give another run", table, **asked)
    (mmn, *_) = sorted((out / "runs").glob("mmn-*"))
    other = with_row(table, "mmn", settings={"train": "val"})
    refused("has the training split train, not val", other, **(asked | {"finished": {"mmn": [mmn]}}))
    other = with_row(table, "mmn", settings={"power": 1.0})
    refused("^row mmn: .* has power 0.5, not 1; give another run", other, **(asked | {"finished": {"mmn": [mmn]}}))
    (first, second) = sorted(
        sorted((out / "runs").glob("crocs-0-*")), key=lambda run: 'begin = ""' not in (run / "config.toml").read_text()
    )
    asked |= {"rows": ["first", "crocs"]}
    refused("^row first: .* has hard_videos 2, not 0", table, **(asked | {"finished": {"first": [second]}}))
    refused("^row crocs: .* has hard_videos 0, not 2", table, **(asked | {"finished": {"crocs": [first]}}))
    soft = with_row(table, "crocs", settings={})
    refused("^row crocs: .* has begin none, not first", soft, **(asked | {"finished": {"crocs": [first]}}))
    other = with_row(with_row(table, "crocs", settings={}), "first", model="mmn")
    refused(
        "^row crocs: .* has begin crocs, not mmn",
        other,
        **(asked | {"rows": ["crocs"], "finished": {"crocs": [second]}}),
    )
    refused(
        "^row mmn-2: is mmn searched in another way; give the run for mmn$",
        table,
        **(asked | {"finished": {"mmn-2": [mmn]}}),
    )
    refused(
        "^row chance: is a blind baseline and has no training run", table, **(asked | {"finished": {"chance": [mmn]}})
    )
    asked |= {"rows": ["mmn"]}
    films = tmp_path / "films"
    simulate_grounding(films, GroundingSettings(videos=40, video_dim=12, text_dim=8, pool=4, seed=1))
    refused("was trained on other data than", table, **(asked | {"data": films, "finished": {"mmn": [mmn]}}))


def test_caption_counts_the_seeds_of_every_kind_of_row(result: TableResult) -> None:
    def over(*names: str) -> str:
        rows = tuple(row for row in result.rows if row.name in names)
        return replace(result, rows=rows, simulated=False).caption.split("Ours: ")[1].split(". ")[0]

    one = replace(result.rows[0], cells=tuple(replace(c, seeds=c.seeds[:1]) for c in result.rows[0].cells))
    assert over("mmn").endswith("bias 0.9, mean ± sd over 2 seeds")
    assert over("chance").endswith("bias 0.9, mean ± sd over 5 seeds")
    mixed = replace(result, rows=(one, *result.rows[1:]))
    assert "mean ± sd over 1 to 2 seeds (blind rows: 5)" in mixed.caption
    assert "one seed (blind rows: 5)" in replace(result, rows=(one, result.rows[-1])).caption


def test_the_papers_search_times_are_next_to_ours(result: TableResult) -> None:
    timed = replace(
        result, table=replace(result.table, run_time=True), rows=(replace(result.rows[0], paper_seconds=25.5),)
    )
    assert as_table(timed).header[-2:] == ["search, seconds, paper", "search, seconds, ours"]
    assert as_table(timed).rows[0][-2] == "25.5"
    assert timed.as_json()["rows"][0]["paper_seconds"] == 25.5


def test_chance_ranks_each_video_of_a_corpus_once(tmp_path: Path) -> None:
    sections = {
        "task": "VR",
        "protocol": "tvr",
        "settings": {"train": "tvr_train"},
        "simulation": {"like": "tvr", "videos": 40, "queries": 40, "video_dim": 8, "text_dim": 8},
        "columns": [{"label": f"R@{k}", "split": "tvr_val", "measure": f"R@{k}[task=VR]"} for k in (1, 100)],
        "rows": {"chance": {"baseline": "chance"}},
    }
    found = reproduce_table(parse_table(sections, "videos"), out=tmp_path)
    assert found is not None
    first, all_videos = found.rows[0].cells
    assert len(first.seeds) == 5
    assert first.ours.mean < 1 == all_videos.ours.mean


def test_intervals_are_drawn_by_video(result: TableResult) -> None:
    assert "R@1, 95 % over videos" in as_table(result).header
    pairs = [np.repeat(np.random.default_rng(0).random(60) > 0.5, 5).astype(float)]
    alone, together = (tie_cell([pairs, [np.ones(300)]], True, c) for c in (None, np.repeat(np.arange(60), 5)))
    assert together.high - together.low > 1.8 * (alone.high - alone.low)


def test_rows_that_are_not_told_apart_share_a_letter(result: TableResult) -> None:
    assert all(cell.letters for row in result.rows for cell in row.cells)
    assert "Rows that share a letter do not differ significantly" in result.caption


def test_an_estimate_trains_nothing_that_stays(table: PaperTable, data: Path, tmp_path: Path) -> None:
    same = replace(table, rows={**table.rows, "twin": replace(table.rows["first"], name="twin", hidden=False)})
    assert len(estimate_table(same, data=data, out=tmp_path, seeds=1, rows=["first", "twin"])) == 2
    found = estimate_table(table, data=data, out=tmp_path, seeds=2, rows=["crocs"])
    assert [(row.label, row.seeds, row.steps) for row in found] == [("first", 2, 2), ("crocs", 2, 2)]
    assert all(row.minutes > 0 for row in found)
    assert not list(tmp_path.iterdir())


def test_an_estimate_that_is_stopped_says_so(
    table: PaperTable, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train_and_stop(*asked: Any, progress: Any) -> Any:
        def interrupt(at: TrainingProgress) -> None:
            progress(at)
            if at.step == 1:
                signal.raise_signal(signal.SIGINT)

        return train_or_read(*asked, progress=interrupt)

    monkeypatch.setattr("momentseek.benchmarks.reproduction.session.train_or_read", train_and_stop)
    with pytest.raises(MomentseekError, match="stopped while mmn was tried; estimate again"):
        estimate_table(table, data=data, out=tmp_path, seeds=1, rows=["mmn"])


def test_what_rates_no_clips_has_no_figure_of_highlights(tmp_path: Path) -> None:
    sections = {
        "title": "Highlights",
        "source": "nobody",
        "protocol": "qvhighlights",
        "simulation": {"like": "qvhighlights", "videos": 40, "video_dim": 8, "text_dim": 8, "preset": "highlights"},
        "columns": [
            {"label": "mAP", "split": "test_iid", "measure": "mAP"},
            {"label": "HIT", "split": "test_iid", "measure": "HIT@1[level=fair]"},
        ],
        "rows": {"frequency": {"baseline": "moment-frequency"}, "whole": {"baseline": "predict-all"}},
    }
    found = reproduce_table(parse_table(sections, "highlights"), out=tmp_path / "out")
    assert found is not None
    frequency, whole = found.rows
    assert not np.isnan([cell.ours.mean for cell in frequency.cells]).any()
    assert np.isnan([cell.ours.mean for cell in whole.cells]).tolist() == [False, True]
