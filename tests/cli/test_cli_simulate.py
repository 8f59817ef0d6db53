from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_truth

SMALL = ["simulate", "--videos", "12", "--queries", "20"]


def test_prints_tables_and_writes_the_folder(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, [*SMALL, "--out", str(tmp_path / "x")], catch_exceptions=False)
    assert done.exit_code == 0
    assert "NDCG@20[IoU>=0.5] on val (simulated)" in done.stdout
    assert "12 videos, 20 queries" in done.stderr
    assert len(read_truth(tmp_path / "x" / "train_top40.json")) == 16


def test_json_report(tmp_path: Path) -> None:
    options = ["--seed", "4", "--hard", "0.2", "--video-dim", "32", "--text-dim", "16", "--json"]
    done = CliRunner().invoke(cli, [*SMALL, *options, "--out", str(tmp_path / "x")], catch_exceptions=False)
    report = json.loads(done.stdout)
    chosen = {"videos": 12, "queries": 20, "seed": 4, "hard": 0.2, "video_dim": 32, "text_dim": 16, "streams": False}
    assert report["settings"] == chosen
    assert report["simulated"] is True
    world = json.loads((tmp_path / "x" / "world.json").read_text())
    assert world["fingerprint"] == report["fingerprint"]


def test_non_empty_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(MomentseekError, match="is not empty"):
        CliRunner().invoke(cli, [*SMALL, "--out", str(tmp_path)], catch_exceptions=False)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    CliRunner().invoke(cli, [*SMALL, "--out", str(tmp_path), "--force"], catch_exceptions=False)
    assert (tmp_path / "data.toml").exists()


def test_rejects_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MomentseekError, match="is a file"):
        CliRunner().invoke(cli, [*SMALL, "--out", str(tmp_path / "file")], catch_exceptions=False)
