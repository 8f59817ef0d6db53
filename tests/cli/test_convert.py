"""``momentseek convert`` and ``momentseek formats``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError

TRUTH = "LAMP1 0.0 6.9##a person lights a lamp.\nKITE2 2.5 9.0##fly.\nLAMP1 3.0 4.0##sit.\n"
SUBMISSION = {
    "video2idx": {"a": 1},
    "VCMR": [{"desc_id": 5, "desc": "x", "predictions": [[1, 0.0, 3.0, 0.5]]}],
    "VR": [{"desc_id": 5, "desc": "x", "predictions": [[1, 0, 0, 0.5]]}],
}


@pytest.fixture
def momentseek(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sta.txt").write_text(TRUTH)
    (tmp_path / "videos.json").write_text('{"LAMP1": 30.0, "KITE2": 12.5}')
    (tmp_path / "submission.json").write_text(json.dumps(SUBMISSION))

    def call(*arguments):
        return CliRunner().invoke(cli, list(arguments))

    return call


def test_by_ending(momentseek, tmp_path):
    result = momentseek("convert", "sta.txt", "out.jsonl")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "read sta.txt: charades-sta; 3 queries, 3 moments\nwrote out.jsonl: native\n"
    again = momentseek("convert", "out.jsonl", "again.txt")
    assert again.exit_code == 0
    assert (tmp_path / "again.txt").read_text() == TRUTH


def test_queries_regrouped_by_video_keep_their_ids(momentseek, tmp_path):
    result = momentseek("convert", "sta.txt", "out.json", "--to", "activitynet", "--videos", "videos.json")
    assert result.exit_code == 0
    assert "not carried" not in result.stderr
    assert json.loads((tmp_path / "out.json").read_text())["LAMP1"] == {
        "duration": 30.0,
        "timestamps": [[0.0, 6.9], [3.0, 4.0]],
        "sentences": ["a person lights a lamp.", "sit."],
    }


def test_reports_what_the_format_cannot_store(momentseek, tmp_path):
    row = {"query_id": "my id", "video": "a", "start": 0.0, "end": 1.0, "relevance": 1, "duration": 9.0, "type": "v"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    result = momentseek("convert", "t.jsonl", "t.txt")
    assert "not stored in charades-sta: query ids (my id became a:0); durations; the field 'type'" in result.stderr


def test_existing_files_are_safe(momentseek, tmp_path):
    with pytest.raises(MomentseekError, match=r"already exists; .*--force"):
        raise momentseek("convert", "submission.json", "sta.txt", "--to", "spr").exception
    assert (tmp_path / "sta.txt").read_text() == TRUTH
    assert momentseek("convert", "sta.txt", "videos.json", "--to", "native", "--force").exit_code == 0


def test_json(momentseek):
    result = momentseek("convert", "sta.txt", "out.jsonl.gz", "--json", "--videos", "videos.json")
    assert json.loads(result.stdout) == {
        "source": "sta.txt",
        "target": "out.jsonl.gz",
        "read_as": "charades-sta",
        "written_as": "native",
        "variant": None,
        "queries": 3,
        "moments": 3,
        "findings": [],
        "lost": [],
        "captions": 0,
    }


def test_task_of_a_submission(momentseek, tmp_path):
    assert momentseek("convert", "submission.json", "all.jsonl").exit_code == 0
    assert (tmp_path / "all.jsonl").read_text().count("VR") == 1
    result = momentseek("convert", "submission.json", "one.json", "--to", "tvr-ranking", "--task", "VCMR")
    assert "wrote one.json: tvr-ranking-predictions" in result.stderr
    assert "not stored in tvr-ranking-predictions: the queries' words" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sta.txt", "out.json"], r"say which format to write \(--to\): activitynet"),
        (["sta.txt", "out.json", "--to", "spr"], "ground truth cannot be written as 'spr', only as"),
        (["sta.txt", "out.json", "--to", "activitynet"], "needs every video's duration"),
        (["submission.json", "out.json", "--to", "spr"], "holds one list of predictions"),
        (["submission.json", "out.json", "--to", "spr", "--task", "SVMR"], "no SVMR predictions in it, only VCMR, VR"),
        (["sta.txt", "out.jsonl", "--from", "nonsense"], "no format for any file is called 'nonsense'"),
        (["nowhere.txt", "out.jsonl"], "cannot be read"),
    ],
)
def test_refusals(momentseek, tmp_path, arguments, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        raise momentseek("convert", *arguments).exception
    assert not (tmp_path / arguments[1]).exists()


def test_lists_of_videos(momentseek, tmp_path):
    (tmp_path / "c.csv").write_text("id,length\nLAMP1,30.5\n")
    result = momentseek("convert", "c.csv", "c.json", "--to", "video-corpus")
    assert result.stderr == "read c.csv: charades-csv; 1 video\nwrote c.json: video-corpus\n"
    assert (tmp_path / "c.json").read_text() == '{"LAMP1": 30.5}'


def test_formats_lists_all(momentseek):
    from momentseek.measuring.formats import FORMATS

    listed = momentseek("formats").stdout.splitlines()
    assert listed[0].split() == ["format", "kind", "can", "what", "it", "is"]
    assert {line.split()[0] for line in listed[1:]} == set(FORMATS)
    entries = json.loads(momentseek("formats", "--json").stdout)["formats"]
    assert {e["name"] for e in entries} == set(FORMATS)


def test_formats_describes_a_file(momentseek, tmp_path):
    (tmp_path / "odd.json").write_text("{}")
    result = momentseek("formats", "sta.txt", "submission.json", "videos.json", "odd.json")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "sta.txt: charades-sta; 3 queries, 3 moments, 2 videos",
        "submission.json: tvr-submission (VCMR, VR); 1 query, 2 moments, 1 video",
        "videos.json: video-corpus; 2 videos",
    ]
    assert lines[3].startswith("odd.json: not recognised")
    found = json.loads(momentseek("formats", "--json", "sta.txt").stdout)["files"]
    assert (found[0]["format"], found[0]["queries"]) == ("charades-sta", 3)


def test_help_has_an_example(momentseek):
    assert "momentseek convert charades_sta_test.txt" in momentseek("convert", "--help").stdout


def test_tacos_in_seconds_is_read_back_in_seconds(momentseek, tmp_path):
    entry = {"timestamps": [[141, 294]], "sentences": ["He cuts."], "fps": 29.4, "num_frames": 2940}
    (tmp_path / "tacos.json").write_text(json.dumps({"s1-d2.avi": entry}))
    assert momentseek("convert", "tacos.json", "x.json", "--to", "activitynet").exit_code == 0
    again = momentseek("convert", "x.json", "y.jsonl")
    assert again.stderr.startswith("read x.json: activitynet; 1 query, 1 moment\n")
    row = json.loads((tmp_path / "y.jsonl").read_text())
    assert (row["start"], row["duration"]) == (141 / 29.4, 100.0)
    tall = momentseek("convert", "tacos.json", "z.json", "--to", "tacos-tall")
    assert tall.exit_code == 0


def test_rejects_output_that_looks_like_another_format(momentseek, tmp_path):
    entry = {"timestamps": [[14, 29]], "sentences": ["He cuts."], "fps": 29.4, "num_frames": 294}
    (tmp_path / "tacos.json").write_text(json.dumps({"s1-d2.avi": entry}))
    with pytest.raises(MomentseekError, match="as tacos-tall this would be taken for activitynet"):
        raise momentseek("convert", "tacos.json", "x.json", "--to", "tacos-tall").exception
    assert not (tmp_path / "x.json").exists()
