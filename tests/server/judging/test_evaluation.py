from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from momentseek.api.library import Library
from momentseek.cli import cli
from momentseek.library.catalog import Catalog

MEASURE = "NDCG@20[IoU>=0.5]"


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def files(campaign: Any, folder: Path, **settings: Any) -> tuple[Path, Path]:
    """The run and the truth that somebody downloads."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(campaign.get("export", kind="tvr-ranking").content)) as archive:
        truth = Path(archive.extract("truth.json", folder))
    made = folder / "run.json"
    made.write_bytes(campaign.get("export", kind="run", **settings).content)
    return made, truth


def test_two_annotators_judge_ten_moments_and_evaluate_gives_the_number(campaign: Any, tmp_path: Path) -> None:
    for text in ("red", "green", "blue and red"):
        query = campaign.ask(text)
        for who, more in (("ann", 0), ("bob", 1)):
            campaign.judge(query, who, lambda m, more=more: m["id"] % 4 + more * (m["id"] % 2))
    page = campaign.get("evaluation").json()
    assert 0 < page["value"] < 1
    run_file, truth = files(campaign, tmp_path)
    command = run("evaluate", run_file, "--truth", truth, "-m", MEASURE, "--ci", "--json")
    assert command["measures"][MEASURE] == page["value"]
    assert command["intervals"][MEASURE] == [page["low"], page["high"]]
    assert command["queries"] == page["queries"] == 3
    assert page["moments"] >= 10


MEASURES = (MEASURE, "NDCG@1[IoU>=0.3]", "NDCG@10[IoU>=0.7,gain=exp2]", "R@5[IoU>=0.5]", "AxIoU@10", "mAP[IoU>=0.5]")


@pytest.mark.parametrize("settings", [{}, {"localiser": "window", "streams": "vision"}, {"all": "false"}])
def test_every_measure_of_every_setup_is_that_of_the_command(
    judged: Any, tmp_path: Path, settings: dict[str, str]
) -> None:
    for measure in MEASURES:
        page = judged.get("evaluation", measure=measure, **settings).json()
        run_file, truth = files(judged, tmp_path, measure=measure, **settings)
        values = tmp_path / "values.jsonl"
        command = run(
            "evaluate", run_file, "--truth", truth, "-m", measure, "--missing", "zero", "--json", "--per-query", values
        )
        assert command["measures"][measure] == page["value"]
        lines = [json.loads(line) for line in values.read_bytes().splitlines()]
        assert [line["measures"][measure] for line in lines] == [one["value"] for one in page["per_query"]]


def test_the_comparison_is_that_of_the_command(judged: Any, tmp_path: Path) -> None:
    page = judged.get("compare", a="localiser=height", b="localiser=whole;streams=vision").json()
    a, truth = files(judged, tmp_path)
    b, _ = files(judged, tmp_path / "other", localiser="whole", streams="vision")
    (found,) = run("compare", a, b, "--truth", truth, "-m", MEASURE, "--missing", "zero", "--json")["measures"]
    (pair,) = found["pairs"]
    for ours, theirs in (("p", "p"), ("difference", "difference"), ("low", "low"), ("high", "high"), ("wins", "wins"),
                         ("ties", "ties"), ("losses", "losses"), ("significant", "significant")):  # fmt: skip
        assert page[ours] == pair[theirs], ours
    assert list(found["means"].values()) == [page["a"]["value"], page["b"]["value"]]
    assert [abs(row["difference"]) for row in page["per_query"]] == sorted(
        (abs(row["difference"]) for row in page["per_query"]), reverse=True
    )


def test_a_setup_does_not_differ_from_itself(judged: Any) -> None:
    page = judged.get("compare", a="", b="localiser=height").json()
    assert (page["difference"], page["p"], page["significant"], page["ties"]) == (0, 1, False, 3)
    assert page["a"] == page["b"]


@pytest.mark.parametrize(("params", "status"), [
    ({"measure": "NDCG@501[IoU>=0.5]"}, 400), ({"measure": "nothing"}, 400), ({"measure": "R@{1,5}[IoU>=0.5]"}, 400),
    ({"measure": "HIT@1"}, 400), ({"measure": ""}, 422), ({"localiser": "none"}, 422), ({"streams": ""}, 422),
    ({"measure": "R@1[task=VR]"}, 200),
])  # fmt: skip
def test_measures_that_cannot_be(judged: Any, params: dict[str, str], status: int) -> None:
    assert judged.get("evaluation", **params).status_code == status


def test_nothing_judged_is_nothing_to_measure(campaign: Any) -> None:
    for what, params in (("evaluation", {}), ("compare", {"a": "", "b": "localiser=whole"})):
        answer = campaign.get(what, **params)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_judged")


def test_another_video_of_the_same_name_is_another_video(
    campaign: Any, place: Path, shared: Path, tmp_path: Path
) -> None:
    """Judged moments are of the old content; what the search finds in the new must not count as them."""
    query = campaign.ask("red")
    for who in ("ann", "bob"):
        campaign.judge(query, who, lambda _: 4)
    before = campaign.get("evaluation").json()
    with Library.open(place) as library:
        library.remove(["one.mp4"])
    other = tmp_path / "other" / "one.mp4"
    other.parent.mkdir()
    shutil.copy(shared / "more" / "three.mp4", other)
    with Library.open(place) as library:
        library.add(other)
        assert "one.mp4" in {video.name for video in library.store.catalog.videos()}
    after = campaign.get("evaluation").json()
    assert after["value"] < before["value"]
    names = {m["video_name"] for m in campaign.get("export", kind="run").json()[str(query)]}
    assert "one.mp4" not in names
    assert any(name.startswith("one.mp4 (") for name in names)


def test_a_library_that_changes_meanwhile_is_said(judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged.get("evaluation").json()["notes"] == []
    states = iter(range(100))
    monkeypatch.setattr(Catalog, "content_number", lambda _: next(states))
    assert "library changed during the search" in judged.get("evaluation").json()["notes"][0]
    assert len(judged.get("compare", a="", b="localiser=whole").json()["notes"]) == 1
