"""``momentseek baseline``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.benchmarks.baselines import BASELINES
from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_run

TRAIN = {f"V{i}": {"duration": 20.0, "timestamps": [[0, 4 + i % 3]], "sentences": ["sits"]} for i in range(9)}
TEST = {"A": {"duration": 30.0, "timestamps": [[3, 9], [1, 2]], "sentences": ["opens a door", "sits"]}}
STA = "A 3.0 9.0##opens a door\nA 1.0 2.0##sits\n"


@pytest.fixture
def momentseek(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.json").write_text(json.dumps(TRAIN))
    (tmp_path / "test.json").write_text(json.dumps(TEST))
    (tmp_path / "sta.txt").write_text(STA)
    (tmp_path / "videos.json").write_text('{"A": 25.0}')

    def call(*arguments):
        return CliRunner().invoke(cli, list(arguments))

    return call


def test_help_and_list_name_them_all(momentseek):
    listed = momentseek("baseline", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == list(BASELINES)
    shown = momentseek("baseline", "--help").stdout
    assert all(f"{b.name}" in shown and b.title in shown for b in BASELINES.values())


@pytest.mark.parametrize("name", BASELINES)
def test_runs_can_be_evaluated(momentseek, name):
    learns = ("--train", "train.json") if BASELINES[name].learns else ()
    result = momentseek("baseline", name, *learns, "--test", "test.json", "--out", "run.jsonl")
    assert result.exit_code == 0, result.exception
    assert result.stderr.startswith(f"wrote run.jsonl: {name}")
    scored = momentseek("evaluate", "run.jsonl", "--truth", "test.json", "-m", "R@1[IoU>=0.3]", "--json")
    assert scored.exit_code == 0
    assert read_run("run.jsonl").query_ids == ("A:0", "A:1")


def test_settings_are_printed(momentseek):
    arguments = ("--train", "train.json", "--test", "test.json", "--samples", "20", "--top", "3", "--seed", "4")
    result = momentseek("baseline", "bias-based", *arguments, "--out", "run.jsonl.gz", "--json")
    assert json.loads(result.stdout) == {
        "baseline": "bias-based",
        "train": "train.json",
        "test": "test.json",
        "run": "run.jsonl.gz",
        "queries": 2,
        "moments": 6,
        "settings": {"bandwidth": 0.008, "samples": 20, "seed": 4},
    }
    assert "bandwidth 0.01, samples 100, seed 0; 2 queries, 20 moments" in (
        momentseek("baseline", "bias-based", *arguments[:4], "--bandwidth", "0.01", "--out", "r.jsonl").stderr
    )


def test_other_formats_and_durations_from_a_list(momentseek, tmp_path):
    told = ("--test", "sta.txt", "--videos", "videos.json", "--out")
    assert momentseek("baseline", "predict-all", *told, "r.jsonl").exit_code == 0
    result = momentseek("baseline", "predict-all", *told, "r.json", "--to", "tvr-ranking")
    assert result.exit_code == 0, result.exception
    assert list(json.loads((tmp_path / "r.json").read_text())) == ["A:0", "A:1"]
    assert read_run("r.jsonl").end.tolist() == [25.0, 25.0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chance"], "needs all three"),
        (["nonsense", "--test", "test.json", "--out", "r.jsonl"], "there is no baseline 'nonsense'"),
        (["bias-based", "--test", "test.json", "--out", "r.jsonl"], "give the training set"),
        (["predict-all", "--test", "sta.txt", "--out", "r.jsonl"], r"duration of video A is unknown; .*--videos"),
        (["chance", "--test", "test.json", "--out", "r.json"], "say which format to write"),
        (["chance", "--test", "test.json", "--out", "r.json", "--to", "csv"], "cannot be written as 'csv'"),
        (["chance", "--test", "test.json", "--out", "train.json"], "already exists"),
        (["chance", "--test", "test.json", "--out", "test.json", "--force"], "is an input of this command"),
        (["chance", "--train", "nope.json", "--test", "test.json", "--out", "r.jsonl"], "chance learns nothing"),
        (["chance", "--bandwidth", "0.1", "--test", "test.json", "--out", "r.jsonl"], "has no density"),
    ],
)
def test_refusals(momentseek, arguments, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        raise momentseek("baseline", *arguments).exception


@pytest.mark.parametrize("width", ["nan", "inf", "0"])
def test_bandwidths_are_finite_numbers(momentseek, width):
    arguments = ("--train", "train.json", "--test", "test.json", "--out", "r.jsonl", "--bandwidth", width)
    assert momentseek("baseline", "bias-based", *arguments).exit_code == 2
