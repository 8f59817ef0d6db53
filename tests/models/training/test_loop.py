from __future__ import annotations

import csv
import json
import signal
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from processes import start_momentseek
from weights import same_weights

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.models.features.data import Data
from momentseek.models.features.store import Array, ArrayCache
from momentseek.models.inference.prediction import predict
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress, saved_config
from momentseek.models.training.loop import train


def stop_at(step: int) -> object:
    """A callback that asks to stop, as Ctrl-C does, once a step is reached."""

    def tell(progress: TrainingProgress) -> None:
        if progress.step == step and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    return tell


def same_run(one: Run, two: Run) -> bool:
    columns = ("video", "start", "end", "score", "offsets")
    return one.videos == two.videos and all(np.array_equal(getattr(one, c), getattr(two, c)) for c in columns)


@pytest.fixture(scope="module")
def straight(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from beginning to end, that others are compared with."""
    out = tmp_path_factory.mktemp("straight") / "run"
    with Data.open(simulated) as data:
        train(base(), data, out)
    return out


def base() -> TrainConfig:
    return TrainConfig.of(
        {
            "model": {"name": "xml", "hidden": 8, "heads": 2, "max_clips": 40, "fit": "resample"},
            "training": {
                "batch": 6,
                "pairs_per_video": 4,
                "steps": 6,
                "validate_every": 4,
                "lr": 0.003,
                "schedule": "cosine",
                "report": ["NDCG@20[IoU>=0.5]"],
            },
            "data": {"train": "train_top20", "validate": "val", "test": "test"},
        }
    )


def test_a_run_leaves_its_folder(straight: Path, corpus: Data) -> None:
    names = {p.name.split(".")[0] if p.name.startswith("events") else p.name for p in straight.iterdir()}
    assert names == {"config.toml", "log.csv", "events", "best.safetensors", "last.safetensors", "report.json"}
    report = json.loads((straight / "report.json").read_text())
    assert report["steps"] == 6
    assert report["stopped"] == "done"
    assert set(report["scores"]) == {"val", "test"}
    print_of = corpus.fingerprint_of(["train_top20", "val", "test"])
    assert report["data"] == {"name": corpus.name, "fingerprint": print_of, "simulated": True}
    best = load_checkpoint(straight / "best.safetensors")
    assert best.value == pytest.approx(report["best"]) == pytest.approx(report["scores"]["val"]["NDCG@20[IoU>=0.5]"])
    assert best.step == report["best_step"] in (4, 6)
    assert saved_config(straight).table() == base().table()
    with (straight / "log.csv").open(newline="") as f:
        logged = [row for row in csv.DictReader(f) if row["loss"]]
    assert [row["step"] for row in logged] == ["4", "6"]
    assert float(logged[0]["loss"]) == pytest.approx(
        sum(float(v) for k, v in logged[0].items() if k.startswith("loss/")), rel=1e-4
    )


def test_the_same_seed_gives_the_same_weights_and_run(straight: Path, corpus: Data, tmp_path: Path) -> None:
    train(base(), corpus, tmp_path / "again")
    train(base().with_changes(["seed=1"]), corpus, tmp_path / "other")
    one, two, other = (
        load_checkpoint(p / "last.safetensors") for p in (straight, tmp_path / "again", tmp_path / "other")
    )
    assert same_weights(one.model, two.model)
    assert not same_weights(one.model, other.model)
    assert same_run(predict(one.model, corpus, "test"), predict(two.model, corpus, "test"))


@pytest.mark.parametrize("at", [2, 4])
def test_interrupted_run_gives_the_same_result(straight: Path, corpus: Data, tmp_path: Path, at: int) -> None:
    """At step 4 the signal comes before the validation, which is then made up for."""
    out = tmp_path / "run"
    stopped = train(base(), corpus, out, progress=stop_at(at))  # type: ignore[arg-type]
    assert (stopped.stopped, stopped.step, stopped.report) == ("interrupted", at, {})
    assert not (out / "report.json").exists()
    done = train(base(), corpus, out, resume=True)
    assert done.stopped == "done"
    one, two = load_checkpoint(straight / "last.safetensors"), load_checkpoint(out / "last.safetensors")
    assert same_weights(one.model, two.model)
    assert all(torch.equal(t, two.optimiser[n]) for n, t in one.optimiser.items())
    assert json.loads((out / "report.json").read_text())["best"] == load_checkpoint(straight).value
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_stopped_during_its_report_resumes_with_the_report(corpus: Data, tmp_path: Path) -> None:
    def tell(progress: TrainingProgress) -> None:
        if progress.step == 6 and progress.doing == "validated":
            signal.raise_signal(signal.SIGINT)

    stopped = train(base(), corpus, tmp_path / "run", progress=tell)
    assert (stopped.stopped, stopped.step, stopped.report) == ("interrupted", 6, {})
    assert not (tmp_path / "run" / "report.json").exists()
    steps: list[int] = []
    done = train(base(), corpus, tmp_path / "run", resume=True, progress=lambda p: steps.append(p.step))
    assert (done.stopped, steps) == ("done", [])
    assert set(done.report["scores"]) == {"val", "test"}


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(straight: Path, simulated: Path, tmp_path: Path) -> None:
    """kill -9 at a random moment after the first checkpoint."""
    out, file = tmp_path / "run", tmp_path / "config.toml"
    file.write_text(base().with_changes(["save_minutes=0.00001"]).text())
    process = start_momentseek("train", "--config", file, "--data", simulated, "--out", out, "-q")
    try:
        while not (out / "last.safetensors").exists() and process.poll() is None:
            time.sleep(0.005)
    finally:
        process.kill()
    process.communicate()
    assert load_checkpoint(out / "last.safetensors").step <= 6
    with Data.open(simulated) as data:
        train(replace(base(), training=saved_config(out).training), data, out, resume=True)
    assert same_weights(
        load_checkpoint(straight / "last.safetensors").model, load_checkpoint(out / "last.safetensors").model
    )


def test_a_few_pairs_are_learnt_by_heart(spoilt: Path, config: TrainConfig, tmp_path: Path) -> None:
    truth = json.loads((spoilt / "train_top01.json").read_text())[:12]
    (spoilt / "train_top01.json").write_text(json.dumps(truth))
    by_heart = ["train=train_top01", "validate=train_top01", "steps=60", "validate_every=60", "lr=0.01", "hidden=16"]
    told: list[TrainingProgress] = []
    with Data.open(spoilt) as data:
        learnt = config.with_changes([*by_heart, "dropout=0"])
        train(learnt, data, tmp_path / "run", progress=told.append)
    assert told[-1].loss < told[5].loss / 4
    assert told[-1].best is not None
    assert told[-1].best > 0.6


def test_training_stops_without_gain(corpus: Data, config: TrainConfig, tmp_path: Path) -> None:
    still = config.with_changes(["lr=0", "steps=100", "validate_every=1", "patience=2"])
    outcome = train(still, corpus, tmp_path / "run")
    assert (outcome.stopped, outcome.step, outcome.best_step) == ("patience", 3, 1)


def test_training_stops_when_time_is_up(corpus: Data, config: TrainConfig, tmp_path: Path) -> None:
    outcome = train(config.with_changes(["minutes=0.000001", "validate_every=1"]), corpus, tmp_path / "run")
    assert outcome.stopped == "time"
    assert outcome.step < 6


def test_a_loss_that_is_no_number_stops_training(corpus: Data, config: TrainConfig, tmp_path: Path) -> None:
    with pytest.raises(
        MomentseekError, match=r"the loss is NaN or infinite at step \d+ \(.*nan.*lower the learning rate"
    ):
        train(config.with_changes(["lr=1e36", "clip=0"]), corpus, tmp_path / "run")


def test_a_run_is_not_overwritten_by_accident(straight: Path, corpus: Data, tmp_path: Path) -> None:
    before = (straight / "last.safetensors").read_bytes()
    with pytest.raises(MomentseekError, match="already holds a training run"):
        train(base(), corpus, straight)
    assert (straight / "last.safetensors").read_bytes() == before


def test_going_on_with_other_settings_or_data_is_refused(straight: Path, corpus: Data, spoilt: Path) -> None:
    with pytest.raises(MomentseekError, match=r"was begun with model\.hidden=8 and not 16"):
        train(base().with_changes(["hidden=16"]), corpus, straight, resume=True)
    with h5py.File(spoilt / "video.h5", "a") as file:
        first = sorted(file)[0]
        file[first][...] = file[first][()] + 1
    with Data.open(spoilt) as other, pytest.raises(MomentseekError, match="was trained on other data"):
        train(base(), other, straight, resume=True)
    with pytest.raises(MomentseekError, match="holds no training run"):
        train(base(), corpus, spoilt, resume=True)


def edit(path: Path, change: object) -> None:
    with h5py.File(path, "a") as file:
        for name in sorted(file):
            new = change(name, file[name][()])  # type: ignore[operator]
            del file[name]
            if new is not None:
                file.create_dataset(name, data=new)


def first_only(change: object) -> object:
    seen: list[str] = []

    def changed(name: str, x: np.ndarray) -> np.ndarray | None:
        seen.append(name)
        return change(x) if len(seen) == 1 else x  # type: ignore[operator, no-any-return]

    return changed


@pytest.mark.parametrize(
    ("file", "change", "what"),
    [
        ("video.h5", first_only(lambda x: None), "has no features for video"),
        ("query.h5", first_only(lambda x: x[:0]), "has no words"),
        ("query.h5", first_only(lambda x: None), "has no features for query"),
        ("subtitle.h5", first_only(lambda x: x[:-1]), "clips in the video features"),
    ],
    ids=["video", "no words", "no query", "clips"],
)
def test_incomplete_data_are_refused_before_training(
    spoilt: Path, config: TrainConfig, tmp_path: Path, file: str, change: object, what: str
) -> None:
    edit(spoilt / file, change)
    with Data.open(spoilt) as data, pytest.raises(MomentseekError, match=what):
        train(config, data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_cut_feature_file_is_refused(spoilt: Path) -> None:
    file = spoilt / "video.h5"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(MomentseekError, match=r"video\.h5: (ends in the middle|cannot be opened)"):
        Data.open(spoilt)


def test_other_columns_than_the_checkpoint_are_refused(straight: Path, spoilt: Path) -> None:
    from momentseek.models.training.checkpoint import refuse_other_dims

    edit(spoilt / "video.h5", lambda name, x: x[:, :5])
    with Data.open(spoilt) as data, pytest.raises(MomentseekError, match=r"video features have 5 columns and .* on 12"):
        refuse_other_dims(load_checkpoint(straight), data, "test", "best.safetensors")


def test_silent_subtitles_train(spoilt: Path, config: TrainConfig, tmp_path: Path) -> None:
    edit(spoilt / "subtitle.h5", lambda name, x: x * 0)
    with Data.open(spoilt) as data:
        outcome = train(config, data, tmp_path / "run")
    assert outcome.stopped == "done"
    assert all(torch.isfinite(t).all() for t in load_checkpoint(tmp_path / "run").model.state_dict().values())


def test_a_model_that_ranks_no_videos_needs_a_first_stage(straight: Path, corpus: Data, tmp_path: Path) -> None:
    config = TrainConfig.of(
        {
            "model": {"name": "excl", "hidden": 8, "max_clips": 40, "fit": "resample", "videos": 5},
            "training": {"batch": 4, "steps": 2, "report": ["NDCG@20[IoU>=0.5]"]},
            "data": {"train": "train_top20", "validate": "val"},
        }
    )
    with pytest.raises(MomentseekError, match="excl searches videos that another model found"):
        train(config, corpus, tmp_path / "none")
    outcome = train(config.with_changes([f"first_stage={straight}"]), corpus, tmp_path / "run")
    assert outcome.stopped == "done"
    assert (
        train(config.with_changes(["task=SVMR", "measure=R@1[IoU>=0.5]", "report=[]"]), corpus, tmp_path / "s").step
        == 2
    )


def test_the_memory_for_features_is_bounded(
    corpus: Data, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With next to no cache, features are read again and the weights come out the same."""
    held: list[int] = []
    made: list[Hashable] = []

    class Watched(ArrayCache):
        def get(self, key: Hashable, make: Callable[[], Array]) -> Array:
            def counted() -> Array:
                made.append(key)
                return make()

            found = super().get(key, counted)
            held.append(sum(array.nbytes for array in self._kept.values()))
            return found

    monkeypatch.setattr("momentseek.models.training.batches.ArrayCache", Watched)
    train(config, corpus, tmp_path / "much")
    assert max(held) > 10_000
    assert len(set(made)) == len(made)
    held.clear()
    made.clear()
    train(config.with_changes(["cache_mb=0.01"]), corpus, tmp_path / "little")
    assert 0 < max(held) <= 10_000
    assert len(set(made)) < len(made)
    assert same_weights(load_checkpoint(tmp_path / "much").model, load_checkpoint(tmp_path / "little").model)
