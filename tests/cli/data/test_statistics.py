"""``momentseek data statistics``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.errors import MomentseekError


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
    assert "train: 1 start >= end" in result.stdout
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
    assert "train: 2 videos have no duration" in result.stderr
    assert "1 videos have no subtitles in subs.jsonl" in result.stderr


def test_refusals(statistics, tmp_path):
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(MomentseekError, match="the file is empty"):
        raise statistics("empty.json", "--report", "found.jsonl").exception
    assert not (tmp_path / "found.jsonl").exists()
    assert statistics().exit_code == 2
