from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from momentseek.benchmarks.reproduction.paper_table import table_names
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.cli import cli


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films") / "films"
    simulate_grounding(folder, GroundingSettings(videos=40, video_dim=12, text_dim=8))
    return folder


def reproduce(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["reproduce", *map(str, arguments)])


def test_tables_and_rows_are_listed() -> None:
    assert set(json.loads(reproduce("--list", "--json").stdout)) == set(table_names())
    assert "TSP-PRL" in reproduce("debiased-2", "--list").stdout


def test_table_is_printed_and_written_in_every_format(films: Path, tmp_path: Path) -> None:
    asked = ["debiased-2", "--data", films, "--out", tmp_path, "--rows", "bias-based,tan2d", "--seeds", 1, "--steps", 2]
    small = ["--set", "hidden=8", "--set", "batch=8"]
    result = reproduce(*asked, *small, "--markdown")
    assert result.exit_code == 0, result.output
    assert "1 of 1: 2D-TAN, seed 0" in result.stderr
    assert "Ours: SIMULATED DATA" in result.stdout
    assert "| 2D-TAN | 46.48 |" in result.stdout
    again = json.loads(reproduce(*asked, *small, "--json", "-q").stdout)
    assert [row["name"] for row in again["rows"]] == ["bias-based", "tan2d"]
    assert again["rows"][1]["cells"][0]["paper"] == 46.48
    assert json.loads((tmp_path / "debiased-2.json").read_text()) == again
    page = (tmp_path / "debiased-2.html").read_text()
    assert "<td>46.48</td>" in page
    assert "<svg" in page
    latex = (tmp_path / "debiased-2.tex").read_text()
    assert latex == reproduce(*asked, *small, "--latex", "-q").stdout
    assert r"\caption{Debiased grounding, Table 2" in latex
    assert r"$\pm$" in latex


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["debiased-two"], "there is no table 'debiased-two'; did you mean"),
        (["debiased-2", "--rows", "ctlr"], "debiased-2 has no row 'ctlr'; did you mean 'ctrl'?"),
        (["debiased-2", "--run", "ctrl"], "'ctrl' names no training run; write ROW=FOLDER"),
        (["debiased-2", "--json", "--latex"], "choose one of --markdown, --latex and --json"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str) -> None:
    result = reproduce(*arguments)
    assert result.exception is not None
    assert sentence in str(result.exception)
