"""The public functions that read, write and convert files."""

from __future__ import annotations

from pathlib import Path

import pytest

import momentseek as ms

CAREFUL, TRUTH = "examples/kitchen/careful.jsonl", "examples/kitchen/truth.jsonl"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    run, truth = ms.read_run(CAREFUL), ms.read_judgements(TRUTH)
    ms.write_run(run, tmp_path / "run.jsonl")
    ms.write_run(run, tmp_path / "run.json", to="tvr-ranking")
    ms.write_judgements(truth, tmp_path / "truth.jsonl.gz")
    again = ms.read_run(tmp_path / "run.json")
    assert ms.read_run(tmp_path / "run.jsonl").to_columns() == run.to_columns()
    assert again.start.tolist() == run.start.tolist()
    assert ms.read_judgements(tmp_path / "truth.jsonl.gz").to_columns() == truth.to_columns()


def test_file_of_unclear_format_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ms.MomentseekError, match=r"say which format to write \(`to`\): "):
        ms.write_run(ms.read_run(CAREFUL), tmp_path / "run.json")
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_converted_onto_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    target.write_text("precious")
    with pytest.raises(ms.MomentseekError, match=r"overwrite it \(force=True\)"):
        ms.convert(CAREFUL, target)
    done = ms.convert(CAREFUL, target, force=True)
    assert (done.queries, done.written_as) == (27, "native-run")
