from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress, saved_config
from momentseek.models.training.loop import train
from momentseek.models.training.processes import join_processes
from momentseek.models.training.setup import prepare_training


@pytest.fixture
def short(config: TrainConfig) -> TrainConfig:
    return config.with_changes(["steps=2", "validate_every=2"])


def add_split(folder: Path, name: str) -> None:
    """A split whose files are not there."""
    with (folder / "data.toml").open("a") as f:
        f.write(f'\n[splits.{name}]\ntruth = "{name}.json"\nquery = "{name}.h5"\n')


def test_a_split_that_is_not_used_may_be_missing(spoilt: Path, short: TrainConfig, tmp_path: Path) -> None:
    add_split(spoilt, "absent")
    with Data.open(spoilt) as data:
        done = train(short, data, tmp_path / "run")
        assert done.stopped == "done"
        assert load_checkpoint(tmp_path / "run").fingerprint == data.fingerprint_of(["train_top20", "val"])
        assert done.report["data"]["fingerprint"] == data.fingerprint_of(["train_top20", "val"])
        assert train(short.with_changes(["steps=3"]), data, tmp_path / "run", resume=True).step == 3


def test_the_fingerprint_is_of_the_data_before_the_first_step(spoilt: Path, short: TrainConfig, tmp_path: Path) -> None:
    with Data.open(spoilt) as data:
        before = data.fingerprint_of(["train_top20", "val"])
    with Data.open(spoilt) as data, join_processes() as processes:
        prepared = prepare_training(short, data, tmp_path / "run", False, processes)
        assert prepared.fingerprint == before
    truth = spoilt / "val.json"

    def spoil(progress: TrainingProgress) -> None:
        if progress.step == 1:
            truth.write_bytes(truth.read_bytes() + b"\n")

    with Data.open(spoilt) as data:
        report = train(short, data, tmp_path / "second", progress=spoil).report
    with Data.open(spoilt) as data:
        assert data.fingerprint_of(["train_top20", "val"]) != before
    assert load_checkpoint(tmp_path / "second").fingerprint == report["data"]["fingerprint"] == before


def test_another_test_split_does_not_keep_a_run_from_going_on(
    simulated: Path, short: TrainConfig, tmp_path: Path
) -> None:
    with Data.open(simulated) as data:
        train(short, data, tmp_path / "run")
        done = train(short.with_changes(["steps=3", "test=test"]), data, tmp_path / "run", resume=True)
    assert set(done.report["scores"]) == {"val", "test"}


def test_a_model_of_the_video_needs_no_subtitles(spoilt: Path, short: TrainConfig, tmp_path: Path) -> None:
    with Data.open(spoilt) as data:
        assert data.subtitle is not None
        file, names = data.subtitle.streams[0].path, data.subtitle.names
    with h5py.File(file, "a") as f:
        columns = f[names[1]].shape[1]
        del f[names[0]], f[names[1]]
        f[names[1]] = np.ones((1, columns + 1), np.float32)
    with Data.open(spoilt) as data:
        with pytest.raises(MomentseekError, match=r"has no features for video|columns and others have"):
            train(short, data, tmp_path / "both")
        assert train(short.with_changes(["modalities=video"]), data, tmp_path / "video").stopped == "done"
        with pytest.raises(MomentseekError, match=r"has no features for video|columns and others have"):
            train(short, data, tmp_path / "both")
    assert not (tmp_path / "both").exists()


def test_queries_with_other_columns_are_found_before_the_first_step(
    spoilt: Path, short: TrainConfig, tmp_path: Path
) -> None:
    with Data.open(spoilt) as data:
        split = data.split("train_top20")
        file, name = split.query.streams[0].path, split.truth.query_ids[-1]
    with h5py.File(file, "a") as f:
        columns = f[name].shape[1]
        del f[name]
        f[name] = np.ones((3, columns + 1), np.float32)
    with Data.open(spoilt) as data, pytest.raises(MomentseekError, match=f"query {name} has {columns + 1} columns"):
        train(short, data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_runs_config_has_absolute_paths(
    simulated: Path, short: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(simulated.parent)
    with Data.open(simulated) as data:
        train(short, data, tmp_path / "first")
        relative = os.path.relpath(tmp_path / "first")
        second = short.with_changes([f"path={simulated.name}", f"first_stage={relative}"])
        train(second, data, tmp_path / "second")
        kept = saved_config(tmp_path / "second")
        assert kept.data.path == str(simulated.resolve())
        assert kept.data.first_stage == str((tmp_path / "first").resolve())
        monkeypatch.chdir(tmp_path)
        assert train(kept.with_changes(["steps=3"]), data, tmp_path / "second", resume=True).step == 3
