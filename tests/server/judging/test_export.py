from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from momentseek.benchmarks.datasets.annotation.label_studio import read_exports
from momentseek.benchmarks.datasets.annotation.labels import read_labels, read_pairs
from momentseek.cli import cli
from momentseek.measuring.formats import read_truth


def unpacked(campaign: Any, kind: str, folder: Path, **params: Any) -> Path:
    answer = campaign.get("export", kind=kind, **params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith("attachment")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(folder)
    return folder


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_data_consensus_on_the_labels_finds_the_same(judged: Any, tmp_path: Path) -> None:
    files = unpacked(judged, "tvr-ranking", tmp_path / "files")
    report = json.loads(run("data", "consensus", files / "labels.csv", "--incomplete", "drop", "--json"))
    answer = judged.get("consensus").json()
    statistics = answer["statistics"]
    assert report.pop("source") != statistics.pop("source")
    assert report == statistics
    every = [pair for query in answer["queries"] for pair in query["pairs"]]
    assert report["kept"] == sum(pair["outcome"] == "kept" for pair in every)
    # two who disagree are discarded by the command; here two more are waited for
    undecided = [pair for pair in every if pair["outcome"] == "waiting" and len(pair["labels"]) == 2]
    assert all(pair["needs"] == 2 for pair in undecided)
    assert report["discarded"] == len(undecided) + sum(pair["outcome"] == "discarded" for pair in every)
    assert report["by_labels"]["4"]["kept"]
    assert report["by_labels"]["4"]["discarded"] == 1
    assert undecided
    assert report["kept"] > 5


def test_data_consensus_writes_the_same_truth_and_pairs(judged: Any, tmp_path: Path) -> None:
    files = unpacked(judged, "tvr-ranking", tmp_path / "files")
    again, pairs = tmp_path / "again.json", tmp_path / "pairs.csv"
    run(
        "data", "consensus", files / "labels.csv", "--incomplete", "drop",
        "--candidates", files / "candidates.jsonl", "--truth", again, "--out", pairs,
    )  # fmt: skip
    assert again.read_bytes() == (files / "truth.json").read_bytes()
    assert read_pairs(pairs) == read_pairs(files / "pairs.csv")
    assert sorted(pairs.read_text().split()) == sorted((files / "pairs.csv").read_text().split())


def test_the_labels_are_everybodys_last_word(judged: Any, tmp_path: Path) -> None:
    first = judged.next(3, "ann")
    assert first["candidate"] is None
    said = judged.get("consensus").json()["queries"][0]["pairs"][0]
    judged.say(1, said["candidate"], "ann", 3)
    files = unpacked(judged, "tvr-ranking", tmp_path)
    labels = read_labels(files / "labels.csv")
    assert set(labels.workers) == {"ann", "bob, the second", "Zoë", "=4+4"}
    assert not labels.repeated.any()
    history = [json.loads(line) for line in (files / "history.jsonl").read_bytes().splitlines()]
    assert len(history) == len(labels) + 1
    assert history[-1] | {"at": 0} == {
        "pair_id": said["pair_id"], "worker": "ann", "relevance": 3, "at": 0, "undone": None,
    }  # fmt: skip


def test_both_truths_are_the_same(judged: Any, tmp_path: Path) -> None:
    files = unpacked(judged, "tvr-ranking", tmp_path)
    (tmp_path / "truth.jsonl").write_bytes(judged.get("export", kind="jsonl").content)
    one, other = read_truth(files / "truth.json"), read_truth(tmp_path / "truth.jsonl")
    assert one.query_ids == other.query_ids == ("1", "2", "3")
    assert one.queries == other.queries == ("red", "green", "a blue sky")
    for name in ("start", "end", "relevance"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert [one.videos[v] for v in one.video] == [other.videos[v] for v in other.video]


def test_label_studio_reads_back(judged: Any, tmp_path: Path) -> None:
    files = unpacked(judged, "label-studio", tmp_path / "ls", base_url="https://example.org/videos")
    tasks = json.loads((files / "tasks.json").read_bytes())
    assert tasks[0]["data"]["video"].startswith("https://example.org/videos/")
    assert "caption" not in json.dumps(tasks)
    assert (files / "page.xml").read_text().startswith("<View>")
    labels = read_labels(unpacked(judged, "tvr-ranking", tmp_path / "tvr") / "labels.csv")
    expected = {
        (labels.pair_ids[p], labels.workers[w], r)
        for p, w, r in zip(labels.pair.tolist(), labels.worker.tolist(), labels.relevance.tolist(), strict=True)
    }
    assert set(read_exports([(tasks, "tasks.json")]).labels) == expected
    run("data", "label-studio", "read", files / "tasks.json", "--out", tmp_path / "labels.csv")
    assert len(read_labels(tmp_path / "labels.csv")) == len(labels)


def test_label_studio_can_have_the_tasks_before_anybody_judged(campaign: Any, tmp_path: Path) -> None:
    assert campaign.get("export", kind="label-studio").status_code == 409
    campaign.ask("red")
    files = unpacked(campaign, "label-studio", tmp_path)
    assert all(task["annotations"] == [] for task in json.loads((files / "tasks.json").read_bytes()))


@pytest.mark.parametrize("kind", ["tvr-ranking", "jsonl", "run"])
def test_nothing_judged_is_nothing_to_export(campaign: Any, kind: str) -> None:
    campaign.judge(campaign.ask("red"), "ann", lambda _: 4)
    campaign.set_rule("two")
    answer = campaign.get("export", kind=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_judged")


@pytest.mark.parametrize("params", [
    {"kind": "exe"}, {}, {"kind": "run", "localiser": "none"}, {"kind": "run", "streams": "x"},
])  # fmt: skip
def test_exports_that_cannot_be(judged: Any, params: dict[str, str]) -> None:
    assert judged.client.get("/api/v1/judging/export", params=params).status_code == 422


def test_an_address_that_would_run_as_a_script_is_refused(judged: Any) -> None:
    assert judged.get("export", kind="label-studio", base_url="javascript:alert(1)").status_code == 400


def test_an_export_is_the_same_bytes_again(judged: Any) -> None:
    assert judged.get("export", kind="tvr-ranking").content == judged.get("export", kind="tvr-ranking").content
