"""The public functions that make runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import momentseek as ms

TRUTH = ms.Judgements.from_groups(["q"], [1], ["a"], [2], [5], durations={"a": 30.0})


def test_a_baseline_answers_objects_and_files(tmp_path: Path) -> None:
    ms.write_judgements(TRUTH, tmp_path / "truth.jsonl")
    run = ms.baseline("predict-all", tmp_path / "truth.jsonl")
    assert run.moments("q") == ms.baseline("predict-all", TRUTH).moments("q") == [ms.Moment("a", 0, 30)]
    learnt = ms.baseline("moment-frequency", TRUTH, train=TRUTH, top=1)
    assert learnt.moments("q") == [ms.Moment("a", 1.5, 4.5)]


def test_what_a_baseline_lacks_is_said() -> None:
    with pytest.raises(ms.MomentseekError, match="give the training set"):
        ms.baseline("bias-based", TRUTH)
    with pytest.raises(ms.MomentseekError, match="there is no baseline 'chanse'; did you mean 'chance'"):
        ms.baseline("chanse", TRUTH)


def test_settings_of_films_are_refused_for_series(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(ms.MomentseekError, match='`pool` is not a setting of like="tvr"; leave it out'):
        ms.simulate(tmp_path / "x", pool=5)
    with pytest.raises(ms.MomentseekError, match="there is no corpus like 'charade'; did you mean 'charades'"):
        ms.simulate(tmp_path / "x", like="charade")


def test_reports_are_shown_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    made = ms.simulate(tmp_path / "series", videos=20, queries=40, video_dim=8, text_dim=8)
    assert repr(made).startswith("<SimulationReport: 20 videos, ")


def test_training_needs_data_unless_it_is_resumed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(ms.MomentseekError, match="there are no data to train on"):
        ms.train("xml")
    with pytest.raises(ms.MomentseekError, match="leave out"):
        ms.train("xml", resume=tmp_path)
