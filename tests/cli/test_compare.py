from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.result import short_labels

QUERIES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A truth in TVR-Ranking's format and three systems, of which the first two find most moments."""
    where = tmp_path_factory.mktemp("compare")
    truth = [
        {
            "query_id": q,
            "query": f"A person opens door {q}",
            "relevant_moment": [
                {
                    "pair_id": q,
                    "video_name": f"show_{q % 9}",
                    "timestamp": [10.0, 20.0],
                    "duration": 60.0,
                    "caption": "",
                    "similarity": 0.5,
                    "relevance": 1 + q % 4,
                }
            ],
        }
        for q in range(QUERIES)
    ]
    (where / "truth.json").write_text(json.dumps(truth))
    for name, share, seed in (("good", 0.9, 1), ("fair", 0.8, 2), ("poor", 0.1, 3)):
        found = np.random.default_rng(seed).random(QUERIES) < share
        run = {
            str(q): [
                {
                    "video_name": f"show_{q % 9}",
                    "timestamp": [11.0, 19.5] if found[q] else [40.0, 50.0],
                    "model_scores": 1.0,
                }
            ]
            for q in range(QUERIES)
        }
        (where / f"{name}.json").write_text(json.dumps(run))
    return where


def compare(folder: Path, *arguments: str, runs: tuple[str, ...] = ("good", "poor")) -> Result:
    files = [str(folder / f"{run}.json") for run in runs]
    return CliRunner().invoke(cli, ["compare", *files, "--truth", str(folder / "truth.json"), *arguments])


def test_text_names_the_rules_the_letters_and_every_pair(folder: Path) -> None:
    result = compare(folder, "-m", "NDCG@10[IoU>={0.5,0.7}]", runs=("good", "fair", "poor"))
    assert result.exit_code == 0
    lines = result.stdout.split("\n")
    assert lines[0] == (
        "protocol paper, 40 queries in 9 videos, which are exchanged and drawn as a whole, paired randomisation test, "
        "Holm-corrected, alpha 0.05"
    )
    assert lines[2].split() == ["run", "NDCG@10[IoU>=0.5]", "NDCG@10[IoU>=0.7]"]
    assert [line.split()[:2] for line in lines[3:6]] == [["a", "good"], ["b", "fair"], ["c", "poor"]]
    assert [line.split()[2][6:] for line in lines[3:6]] == ["ᶜ", "ᶜ", ""]
    assert sum(" − " in line for line in lines) == 6
    assert all(line == line.rstrip() for line in lines)


def test_per_query_lists_the_queries_that_differ(folder: Path) -> None:
    listed = compare(folder, "-m", "NDCG@10[IoU>=0.5]", "--per-query", "3").stdout.split("\n")
    title = listed.index("NDCG@10[IoU>=0.5]: where good (a) and poor (b) differ most")
    assert [line.split("  ")[-1].startswith("A person opens door") for line in listed[title + 3 :]] == [True] * 3 + [
        False
    ]
    default = compare(folder, "-m", "NDCG@10[IoU>=0.5]", "--per-query").stdout
    assert default.count("A person opens door") == 10


def test_json_is_one_object(folder: Path) -> None:
    result = compare(folder, "-m", "mIoU", "--test", "t", "--correction", "none", "--json", "--per-query", "2")
    found = json.loads(result.stdout)
    assert (found["protocol"], found["test"], found["correction"], found["queries"]) == ("paper", "t", "none", QUERIES)
    measure = found["measures"][0]
    assert set(measure["means"]) == {"good", "poor"}
    assert measure["better_than"] == {"good": ["b"], "poor": []}
    pair = measure["pairs"][0]
    assert pair["low"] < pair["difference"] < pair["high"]
    assert pair["difference"] == pytest.approx(measure["means"]["good"] - measure["means"]["poor"])
    assert len(found["largest_differences"]["queries"]) == 2


def test_markdown_and_latex(folder: Path) -> None:
    assert compare(folder, "-m", "mIoU", "--markdown").stdout.startswith("| run | mIoU |\n|:---|---:|\n| a good | **")
    latex = compare(folder, "-m", "R@1[IoU>=0.5]", "--latex", "--test", "tukey").stdout
    assert "randomised Tukey HSD test, corrected by the test itself" in latex
    assert r"run & R@1[IoU$\geq$0.5] \\" in latex
    assert r"}$^{b}$ \\" in latex


def test_the_seed_the_protocol_and_alpha_are_passed_on(folder: Path) -> None:
    arguments = ("-m", "NDCG@10[IoU>=0.5]", "--json", "--seed", "7", "-p", "tvr-ranking", "--alpha", "0.00001")
    found = json.loads(compare(folder, *arguments).stdout)
    assert (found["seed"], found["protocol"], found["alpha"]) == (7, "tvr-ranking", 0.00001)
    assert not found["measures"][0]["pairs"][0]["significant"]


def test_queries_without_predictions_are_refused_or_left_out_for_all(folder: Path, tmp_path: Path) -> None:
    for name in ("truth", "good"):
        (tmp_path / f"{name}.json").write_bytes((folder / f"{name}.json").read_bytes())
    run = json.loads((folder / "poor.json").read_text())
    del run["7"]
    with gzip.open(tmp_path / "poor.json.gz", "wt") as file:
        json.dump(run, file)
    files = [str(tmp_path / "good.json"), str(tmp_path / "poor.json.gz"), "-t", str(tmp_path / "truth.json")]
    refused = CliRunner().invoke(cli, ["compare", *files])
    assert isinstance(refused.exception, MomentseekError)
    assert "no predictions" in str(refused.exception)
    skipped = CliRunner().invoke(cli, ["compare", *files, "--missing", "skip", "-m", "mIoU"])
    assert "Left out for all runs: 1 query that does not count for one of them." in skipped.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["good.json"], "a comparison needs at least two runs"),
        ([], "a comparison needs at least two runs"),
        (["good.json", "poor.json", "--json", "--latex"], "choose one of --markdown, --latex and --json"),
        (["good.json", "poor.json", "-p", "papr"], "did you mean 'paper'?"),
        (["good.json", "none.json"], "none.json"),
    ],
)
def test_bad_input_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(cli, ["compare", *arguments, "-t", "truth.json"])
    assert isinstance(result.exception, MomentseekError)
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize(
    "bad", [["--alpha", "0"], ["--alpha", "1"], ["--seed", "-1"], ["--per-query", "0"], ["--test", "u"]]
)
def test_impossible_options_are_refused(folder: Path, bad: list[str]) -> None:
    assert compare(folder, *bad).exit_code == 2


def test_help_has_an_example(momentseek: Callable[..., Any]) -> None:
    assert "momentseek compare ours.json theirs.json --truth test.json" in momentseek("compare", "--help").stdout


def test_labels_include_folders_until_unique() -> None:
    assert short_labels(["a/x.json", "a/y.jsonl.gz"]) == ["x", "y"]
    assert short_labels(["a/x.json", "b/x.json", "b/y.json"]) == ["a/x", "b/x", "y"]
    assert short_labels(["1/a/x.json", "2/a/x.json"]) == ["1/a/x", "2/a/x"]
    assert short_labels(["x.json", "a/x.json"]) == ["x", "a/x"]
    assert short_labels(["x.json", "x.json"]) == ["x", "x"]
    assert short_labels(["runs/.hidden", "y"]) == [".hidden", "y"]


def test_seeds_of_a_system_are_found_by_a_pattern(folder: Path) -> None:
    for name in ("good", "poor"):
        for seed in (1, 2):
            (folder / f"seed-{name}-{seed}.json").write_bytes((folder / f"{name}.json").read_bytes())
    runs = (f"x:{folder}/seed-good-*.json", f"y:{folder}/seed-poor-*.json")
    asked = ["--truth", str(folder / "truth.json"), "-m", "NDCG@10[IoU>=0.5]", "--power"]
    result = CliRunner().invoke(cli, ["compare", *runs, *asked])
    assert result.exit_code == 0, result.output
    assert "2 seeds per system, t-test over videos and seeds" in result.stdout
    assert "smallest findable" in result.stdout
    alone = compare(folder, "-m", "NDCG@10[IoU>=0.5]", "--cluster", "none", runs=("good", "poor"))
    assert "40 queries, paired" in alone.stdout
    nothing = CliRunner().invoke(cli, ["compare", "x:nothing-*.json", runs[1], "--truth", str(folder / "truth.json")])
    assert isinstance(nothing.exception, MomentseekError)
    assert "no file fits the pattern nothing-*.json" in str(nothing.exception)
