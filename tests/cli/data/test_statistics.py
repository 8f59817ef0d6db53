"""``momentseek data statistics``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError


@pytest.fixture
def statistics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("LAMP1 0.0 6.9##a person lights a lamp.\nKITE2 9.0 2.5##fly.\n")
    (tmp_path / "test.txt").write_text("LAMP1 3.0 40.0##a person sits down on the old green sofa.\n")
    (tmp_path / "videos.json").write_text('{"LAMP1": 30.0, "KITE2": 12.5}')

    def call(*arguments):
        return CliRunner().invoke(cli, ["data", "statistics", *arguments])

    return call


def test_splits_side_by_side(statistics):
    result = statistics("train.txt", "test.txt", "--videos", "videos.json")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["train", "test", "total"]
    rows = {line[:33].strip(): line[33:].split() for line in result.stdout.splitlines()}
    assert rows["queries"] == ["2", "1", "3"]
    assert rows["videos"] == ["2", "1", "2"]
    assert "test: 1 end beyond the video (LAMP1:0: 3–40 s of LAMP1, which lasts 30 s)" in result.stdout
    assert "train: 1 moment with start >= end (KITE2:0: 9–2.5 s of KITE2, which lasts 12.5 s)" in result.stdout
    assert "test: 1 video also in another split (LAMP1)" in result.stdout


def test_json_report_and_notes(statistics, tmp_path):
    (tmp_path / "subs.jsonl").write_text('{"vid_name": "KITE2", "sub": [{"text": "Fly!", "start": 0, "end": 1}]}')
    options = ["--subtitles", "subs.jsonl", "--report", "found.jsonl", "--min-words", "2", "--json"]
    result = statistics("train.txt", *options)
    answer = json.loads(result.stdout)
    assert answer["total"]["queries"] == 2
    counts = {c["check"]: c["count"] for c in answer["checks"]}
    assert counts["copied from the subtitles"] == 1
    assert counts["fewer than 2 words"] == 1
    findings = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert {f["reason"] for f in findings} == {"copied from the subtitles", "fewer than 2 words", "start >= end"}
    (backwards,) = [f for f in findings if f["reason"] == "start >= end"]
    assert backwards == {
        "subject": "KITE2:0",
        "outcome": "found",
        "reason": "start >= end",
        "evidence": {
            "split": "train",
            "query_id": "KITE2:0",
            "video": "KITE2",
            "start": 9.0,
            "end": 2.5,
            "duration": None,
            "text": None,
            "repeats": None,
        },
    }
    (short,) = [f for f in findings if f["reason"] == "fewer than 2 words"]
    assert (short["subject"], short["evidence"]["text"], short["evidence"]["start"]) == ("KITE2:0", "fly.", 9.0)
    assert next(c["found"] for c in answer["checks"] if c["check"] == "start >= end")[0]["video"] == "KITE2"
    assert "train: 2 videos have no duration" in result.stderr
    assert "1 video has no subtitles in subs.jsonl" in result.stderr


def test_refusals(statistics, tmp_path):
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(MomentseekError, match="the file is empty"):
        raise statistics("empty.json", "--report", "found.jsonl").exception
    assert not (tmp_path / "found.jsonl").exists()
    assert statistics().exit_code == 2


def test_inputs_survive(statistics, tmp_path):
    before = (tmp_path / "train.txt").read_text()
    with pytest.raises(MomentseekError, match=r"train\.txt: is an input"):
        raise statistics("train.txt", "--report", "train.txt", "--force").exception
    assert (tmp_path / "train.txt").read_text() == before
    (tmp_path / "found.jsonl").write_text("mine")
    with pytest.raises(MomentseekError, match="is there already"):
        raise statistics("train.txt", "--report", "found.jsonl").exception
    assert statistics("train.txt", "--report", "found.jsonl", "--force").exit_code == 0
    assert (tmp_path / "found.jsonl").read_text() != "mine"


def test_a_file_counts_once(statistics):
    with pytest.raises(MomentseekError, match=r"train\.txt: is given twice"):
        raise statistics("train.txt", "./train.txt").exception


def test_one_and_many(statistics, tmp_path):
    (tmp_path / "val.txt").write_text("LAMP1 3.0 4.0##sit.\nKITE2 3.0 4.0##fly.\nKITE2 3.0 4.0##fly.\n")
    text = statistics("train.txt", "val.txt").stdout
    assert "val: 2 videos also in another split (LAMP1; KITE2)" in text
    assert "val: 1 exact duplicate (video, times, words) (KITE2:1 repeats KITE2:0: fly.)" in text
    assert "val: 3 queries of fewer than 8 words (" in text
    assert "train: 1 query with words also asked in another split (" in text
    assert "fewer than 1 word\n" in statistics("train.txt", "--min-words", "1").stdout + "\n"
