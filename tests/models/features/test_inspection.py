from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.models.features.inspection import entry_count, inspect_features
from momentseek.models.features.store import write_npz_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two videos of 10 s; one has a NaN, a third that is annotated has no features, a fourth is not annotated."""
    bad = np.ones((5, 4))
    bad[2, 1] = np.nan
    videos = {"good": np.ones((5, 4)), "bad": bad, "other": np.ones((2, 4))}
    write_npz_folder(tmp_path / "clip", ((name, {"features": rows}) for name, rows in videos.items()))
    words = {"last_hidden_state": np.ones((3, 6))}
    write_npz_folder(tmp_path / "text", [(f"qid{i}", words) for i in range(3)])
    rows = [
        {"qid": i, "query": "x", "vid": video, "duration": 10, "relevant_windows": [[0, 2]]}
        for i, video in enumerate(["good", "bad", "gone"])
    ]
    (tmp_path / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "data.toml").write_text(
        'clip_seconds = 2\n[features]\nvideo = "clip"\n[splits.val]\ntruth = "val.jsonl"\nquery = "text"\n'
    )
    return tmp_path


def test_streams_are_described_and_checked_against_the_annotations(folder: Path) -> None:
    video, query = inspect_features(folder)
    assert (video.entries, video.columns, video.rows, video.dtypes) == (3, (4,), (2, 5.0, 5), ("float32",))
    assert (video.not_finite, video.missing, video.unused, video.coverage) == (("bad",), ("gone",), 1, 1.0)
    assert (query.holds, query.entries, query.rows, query.problems) == ("query: val", 3, (3, 3.0, 3), [])
    assert [sentence.partition(": ")[2] for sentence in video.problems] == [
        "NaN or infinite values in bad",
        "annotated but without features: gone",
    ]
    assert entry_count(folder) == 6


def test_clips_of_another_length_are_noticed(folder: Path) -> None:
    text = (folder / "data.toml").read_text()
    (folder / "data.toml").write_text(text.replace("clip_seconds = 2", "clip_seconds = 1"))
    assert "rows are 50% of the clips of their videos; check clip_seconds" in inspect_features(folder)[0].problems[-1]


def test_widths_that_differ_and_files_that_are_broken_are_counted(folder: Path) -> None:
    write_npz_folder(
        folder / "clip", [("wide", {"features": np.ones((2, 7))}), ("none", {"features": np.ones((0, 4))})]
    )
    (folder / "clip" / "torn.npz").write_bytes(b"PK")
    (found,) = inspect_features(folder / "clip")
    assert (found.entries, found.columns, found.empty) == (6, (4, 7), ("none",))
    assert found.unreadable[0].startswith("video torn cannot be read")
    assert (found.missing, found.unused, found.coverage) == ((), 0, None)
    assert len(found.problems) == 4


def test_the_command_prints_a_table_and_fails_on_problems(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["data", "features", "--inspect", str(folder)])
    assert result.exit_code == 1
    assert "2 to 5 (5)" in result.stdout
    assert "problem: " in result.stdout
    found = json.loads(CliRunner().invoke(cli, ["data", "features", "--inspect", str(folder), "--json"]).stdout)
    assert found["streams"][0]["missing"] == ["gone"]
    assert len(found["problems"]) == 2
    fine = CliRunner().invoke(cli, ["data", "features", "--inspect", str(folder / "text")])
    assert fine.exit_code == 0
