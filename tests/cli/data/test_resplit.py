"""``momentseek data resplit``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_truth


def captions(names, spans, key="duration"):
    return {
        v: {key: 60.0, "timestamps": [list(s) for s in spans], "sentences": ["a person opens the door."] * len(spans)}
        for v in names
    }


COMMON = captions([f"c{i:02}" for i in range(30)], [(0, 12), (1, 13)])
RARE = captions(["r1", "r2", "r3"], [(30, 40), (44, 59)])
RULES = ("--preset", "paper", "--bandwidth", "0.05", "--share", "0.09")  # 5 of 66 pairs


@pytest.fixture
def momentseek(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.json").write_text(json.dumps(COMMON))
    (tmp_path / "two.json").write_text(json.dumps(RARE))
    (tmp_path / "published_test_ood.json").write_text(json.dumps({"r1": RARE["r1"], "c01": COMMON["c01"]}))
    (tmp_path / "sta.txt").write_text("A 0.0 5.0##sits\n")

    def call(*arguments):
        return CliRunner().invoke(cli, ["data", "resplit", *arguments])

    return call


def test_four_files_and_a_report(momentseek, tmp_path):
    result = momentseek("one.json", "two.json", *RULES, "--out", "new/here", "--report", "why.jsonl")
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines() == [
        "split     videos  pairs  % of pairs",
        "train         28     56        84.8",
        "val            1      2         3.0",
        "test_iid       1      2         3.0",
        "test_ood       3      6         9.1",
    ]
    ood = json.loads((tmp_path / "new/here/test_ood.json").read_text())
    assert ood == RARE
    parts = [read_truth(f"new/here/{s}.json") for s in ("train", "val", "test_iid", "test_ood")]
    assert sorted(v for p in parts for v in p.videos) == sorted({**COMMON, **RARE})
    lines = [json.loads(line) for line in (tmp_path / "why.jsonl").read_text().splitlines()]
    assert len(lines) == 33
    assert lines[-1]["subject"] == "r3"
    assert lines[-1]["outcome"] == "test_ood"
    assert lines[-1]["reason"] == "half or more of its pairs are rare"


def test_published_splits_are_compared(momentseek):
    result = momentseek(
        "one.json", "two.json", *RULES, "--out", "o", "--json", "--reference", "published_test_ood.json"
    )
    found = json.loads(result.stdout)
    assert found["splits"]["test_ood"] == {"videos": 3, "pairs": 6}
    assert found["recipe"]["bandwidth"] == 0.05
    assert found["published"][0]["split"] == "test_ood"
    assert found["published"][0]["videos"] == {
        "ours": 3,
        "theirs": 2,
        "both": 1,
        "precision": 1 / 3,
        "recall": 0.5,
        "iou": 0.25,
    }
    text = momentseek(
        "one.json", "two.json", *RULES, "--out", "p", "--reference", "train=published_test_ood.json"
    ).stdout
    assert "train  published_test_ood.json  videos" in text


def test_published_format_is_kept(momentseek, tmp_path):
    for name, part in (("a.json", COMMON), ("b.json", RARE)):
        form = {
            v: {"timestamps": e["timestamps"], "sentences": e["sentences"], "video_duration": 60.0}
            for v, e in part.items()
        }
        (tmp_path / name).write_text(json.dumps(form))
    assert momentseek("a.json", "b.json", *RULES, "--out", "cd").exit_code == 0
    assert set(json.loads((tmp_path / "cd/test_ood.json").read_text())["r1"]) == {
        "sentences",
        "timestamps",
        "video_duration",
    }


def test_options_change_the_preset(momentseek, tmp_path):
    arguments = (*RULES[:2], "--bandwidth", "scott", "--share", "0.2", "--ties", "train", "--clip", "--swap")
    more = ("--long-moments", ">0.6", "--val-share", "0.1", "--iid-share", "0.2", "--seed", "3")
    found = json.loads(momentseek("one.json", "two.json", *arguments, *more, "--out", "o", "--json").stdout)
    assert found["recipe"] == {
        "bandwidth": "scott",
        "share": 0.2,
        "ties": "train",
        "long_moments": ">0.6",
        "swap": True,
        "clip": True,
        "val_share": 0.1,
        "iid_share": 0.2,
        "seed": 3,
    }
    assert found["splits"]["val"]["videos"] == 3
    for text, said in ((">=0.9", ">=0.9"), ("0.9", ">=0.9"), ("off", "off")):
        result = momentseek("one.json", "two.json", *RULES, "--long-moments", text, "--out", "o", "--json", "--force")
        assert json.loads(result.stdout)["recipe"]["long_moments"] == said


def test_durations_replace_the_files_own(momentseek, tmp_path):
    (tmp_path / "long.json").write_text(json.dumps(dict.fromkeys([*COMMON, *RARE], 120.0)))
    result = momentseek("one.json", "two.json", *RULES, "--out", "o", "--durations", "long.json")
    assert result.exit_code == 0, result.exception
    assert json.loads((tmp_path / "o/test_ood.json").read_text())["r1"]["duration"] == 120.0


def test_existing_files_are_safe(momentseek, tmp_path):
    (tmp_path / "o").mkdir()
    (tmp_path / "o/test_ood.json").write_text("mine")
    with pytest.raises(MomentseekError, match=r"already exists; .*--force"):
        raise momentseek("one.json", "two.json", *RULES, "--out", "o").exception
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["test_ood.json"]
    assert momentseek("one.json", "two.json", *RULES, "--out", "o", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["one.json", "one.json", *RULES], "the same file is given twice"),
        (["sta.txt", *RULES], r"duration of video A is unknown; .*--durations"),
        (["one.json", *RULES, "--bandwidth", "wide"], "--bandwidth wide: give a positive number"),
        (["one.json", *RULES, "--long-moments", "most"], "--long-moments most: give a share"),
        (["one.json", "two.json", *RULES, "--reference", "two.json"], "which split is it"),
        (["one.json", "two.json", *RULES, "--val-share", "0"], "val would have none of 33 videos"),
        (["one.json", "two.json", *RULES[:2], "--share", "0"], "raise --share"),
        (["nowhere.json", *RULES], "cannot be read"),
        (["one.json", *RULES[:2], "--share", "1"], "makes 60 of 60 pairs rare: nothing to set apart; lower --share"),
    ],
)
def test_refusals_write_nothing(momentseek, tmp_path, arguments, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        raise momentseek(*arguments, "--out", "o", "--report", "why.jsonl").exception
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "why.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "r", "--report", "r/train.json"], "r/train.json: is named for two outputs"),
        (["--out", "r", "--report", "one.json", "--force"], "is an input of this command"),
        (["--out", "in", "--force", "--reference", "test_ood=in/test_ood.json"], "is an input of this command"),
        (["--out", "one.json"], "one.json: cannot be created as a folder"),
    ],
)
def test_nothing_is_destroyed(momentseek, tmp_path, arguments, sentence):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/test_ood.json").write_text(json.dumps(RARE))
    with pytest.raises(MomentseekError, match=sentence):
        raise momentseek("one.json", "two.json", *RULES, *arguments).exception
    assert not (tmp_path / "r").exists()
    assert json.loads((tmp_path / "one.json").read_text()) == COMMON
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["test_ood.json"]


def test_folder_instead_of_a_file_stops_all(momentseek, tmp_path):
    (tmp_path / "o/val.json").mkdir(parents=True)
    with pytest.raises(MomentseekError, match=r"val.json: is a folder"):
        raise momentseek("one.json", "two.json", *RULES, "--out", "o", "--force").exception
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["val.json"]


def test_charades_cd_preset_writes_its_format(momentseek, tmp_path):
    lines = [
        f"{v} {s} {e}##{text}"
        for v, entry in {**COMMON, **RARE}.items()
        for (s, e), text in zip(entry["timestamps"], entry["sentences"], strict=True)
    ]
    (tmp_path / "sta.txt").write_text("\n".join(lines))
    (tmp_path / "long.json").write_text(json.dumps(dict.fromkeys([*COMMON, *RARE], 60.0)))
    told = ("--preset", "charades-cd", *RULES[2:], "--durations", "long.json", "--out", "cd")
    assert momentseek("sta.txt", *told).exit_code == 0
    assert json.loads((tmp_path / "cd/test_ood.json").read_text())["r1"] == {
        "sentences": RARE["r1"]["sentences"],
        "timestamps": [[30.0, 40.0], [44.0, 59.0]],
        "video_duration": 60.0,
    }


def test_shares_are_numbers(momentseek):
    assert momentseek("one.json", *RULES, "--share", "nan", "--out", "o").exit_code == 2


def test_rejects_a_video_with_two_durations(momentseek, tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"r1": {**RARE["r1"], "duration": 61.0}}))
    with pytest.raises(MomentseekError, match=r"other.json: video r1 lasts 61 s, but 60 s in two.json"):
        raise momentseek("one.json", "two.json", "other.json", *RULES, "--out", "o").exception


def test_figures(momentseek, tmp_path):
    pytest.importorskip("matplotlib")
    often = captions([f"d{i:02}" for i in range(15)], [(30 + i, 41 + i) for i in range(2)])
    (tmp_path / "two.json").write_text(json.dumps(often))
    result = momentseek("one.json", "two.json", *RULES[:4], "--share", "0.3", "--out", "o", "--plots", "figures")
    assert result.exit_code == 0, result.exception
    names = {"locations-before", "locations-after", "verbs", "locations-by-verb"}
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {f"{n}.{k}" for n in names for k in ("png", "svg")}
    assert all(p.stat().st_size > 5000 for p in (tmp_path / "figures").iterdir())


def test_reports_repeated_pairs_and_ties(momentseek, tmp_path):
    (tmp_path / "again.json").write_text(json.dumps({"r1": RARE["r1"]}))
    result = momentseek("one.json", "two.json", "again.json", *RULES, "--out", "o")
    assert "note: 2 pairs repeat another" in result.stderr
    assert "pairs are equally dense at the cut; the first of them count as rare" in result.stderr
