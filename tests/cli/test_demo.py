"""The demo: its library is made, searched and measured with the real command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path


def test_finds_the_right_scenes_with_their_edges(sample: Path) -> None:
    answer = json.loads((sample / "demo.json").read_text())
    right = [query for query in answer["queries"] if query["hits"][0]["video"] == query["truth"]["video"]]
    assert sum(query["hits"][0]["iou"] > 0.5 for query in right) >= 4
    assert answer["measures"]["AxIoU@1"] >= 0.7


def test_second_run_only_searches(momentseek, sample: Path, tmp_path: Path) -> None:
    shutil.copytree(sample / "library", tmp_path / "library")
    (tmp_path / "films").symlink_to(sample / "films")
    again = momentseek("demo", "--into", tmp_path, "--no-words")
    assert again.returncode == 0, again.stderr
    assert "4 videos unchanged" in again.stderr
    assert "'a cat looking at the camera'" in again.stdout
    assert "label" in again.stdout
