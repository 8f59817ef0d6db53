from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_captions


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with simulated data, and a captioner trained on them for two steps with the command line."""
    here = tmp_path_factory.mktemp("described")
    simulate(here / "data", SimulationSettings(videos=10, queries=20, seed=0, video_dim=8, text_dim=8))
    small = ["hidden=8", "heads=2", "feedforward=8", "word_dim=4", "layers=1", "batch=16", "steps=2"]
    settings = [part for setting in [*small, "threshold=0"] for part in ("--set", setting)]
    arguments = ["train", "mmt", "--data", str(here / "data"), *settings, "--out", str(here / "mmt"), "--quiet"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert "CIDEr-D" in done.output
    return here


def run(*arguments: object) -> tuple[str, str]:
    """Return what the command prints on stdout and stderr, including its error."""
    done = CliRunner().invoke(cli, ["describe", *map(str, arguments)])
    if isinstance(done.exception, MomentseekError):
        return done.stdout, str(done.exception)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_captions_are_written_as_tvcs_and_can_be_evaluated(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "captions.jsonl"
    given = (trained / "mmt", "--data", trained / "data", "--split", "tvc_test")
    stdout, stderr = run(*given, "--beam", 2, "--out", out)
    assert stdout == ""
    assert "beam of 2" in stderr
    truth = trained / "data" / "tvc_test_release.jsonl"
    assert read_captions(out).query_ids == read_captions(truth).query_ids
    scored = CliRunner().invoke(
        cli, ["evaluate", str(out), "--truth", str(truth), "--protocol", "tvc", "-m", "CIDEr-D", "--json"]
    )
    assert scored.exit_code == 0, scored.output
    assert "--force" in run(*given, "--out", out)[1]


def test_captions_are_printed_as_lines_and_as_json(trained: Path) -> None:
    given = (trained / "mmt", "--data", trained / "data", "--split", "tvc_val", "--quiet")
    lines, _ = run(*given)
    told = json.loads(run(*given, "--json")[0])
    assert (told["model"], told["beam"], told["simulated"]) == ("mmt", 1, True)
    assert [line.split("\t")[1] for line in lines.splitlines()] == [row["caption"] for row in told["captions"]]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--split", "tvc_tset"], "did you mean 'tvc_test'"),
        (["--split", "test"], "has queries and no captions"),
        (["--split", "tvc_test", "--to", "tvc"], "--to is the format of a file"),
    ],
)
def test_errors_are_one_sentence(arguments: list[str], what: str, trained: Path) -> None:
    out, said = run(trained / "mmt", "--data", trained / "data", *arguments)
    assert (out, len(said.splitlines())) == ("", 1)
    assert what in said


def test_captioner_export(trained: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["export", str(trained / "mmt"), "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["difference"] < 1e-4
