"""The sample library, made, searched and measured by the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_right_scenes_come_first_with_their_edges(momentseek, tmp_path: Path) -> None:
    first = momentseek("demo", "--into", tmp_path, "--json")
    assert first.returncode == 0, first.stderr
    answer = json.loads(first.stdout)
    right = [query for query in answer["queries"] if query["hits"][0]["video"] == query["truth"]["video"]]
    assert sum(query["hits"][0]["iou"] > 0.5 for query in right) >= 4
    assert answer["measures"]["AxIoU@1"] >= 0.7

    again = momentseek("demo", "--into", tmp_path)
    assert again.returncode == 0, again.stderr
    assert "4 videos unchanged" in again.stderr
    assert "'a cat looking at the camera'" in again.stdout
    assert "label" in again.stdout
