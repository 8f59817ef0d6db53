from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from momentseek.errors import MomentseekError
from momentseek.features import Data
from momentseek.formats import write_run
from momentseek.models.inference import predict
from momentseek.training import Progress, TrainConfig, load, train
from momentseek.training.spread import train_or_read, train_seeds


@pytest.fixture
def short(config: TrainConfig) -> TrainConfig:
    return config.changed(["steps=2", "validate_every=2"])


def test_numbers_of_other_data_are_not_reused(
    simulated: Path, spoilt: Path, short: TrainConfig, tmp_path: Path
) -> None:
    with Data.open(simulated) as data:
        reports = train_seeds(short, data, tmp_path / "runs", 1)
    copied = Path(shutil.copytree(simulated, tmp_path / "copied"))
    with Data.open(copied) as data:  # the same data, elsewhere
        assert train_seeds(short.changed([f"path={copied}"]), data, tmp_path / "runs", 1) == reports
    (spoilt / "val.json").write_bytes((spoilt / "val.json").read_bytes() + b"\n")
    with Data.open(spoilt) as data, pytest.raises(MomentseekError, match="seed-0: its report is of other data than"):
        train_seeds(short, data, tmp_path / "runs", 1)
    assert json.loads((tmp_path / "runs" / "seed-0" / "report.json").read_text()) == reports[0]


def test_a_report_that_names_no_data_is_not_reused(corpus: Data, short: TrainConfig, tmp_path: Path) -> None:
    report, _ = train_or_read(short, corpus, tmp_path)
    (tmp_path / "report.json").write_text(json.dumps({**report, "data": {"name": corpus.name}}))
    with pytest.raises(MomentseekError, match="its report is of other data than"):
        train_or_read(short, corpus, tmp_path)


@pytest.mark.parametrize("setting", ["begin", "first_stage"])
def test_numbers_of_an_earlier_stage_are_not_reused(
    corpus: Data, short: TrainConfig, tmp_path: Path, setting: str
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(short, corpus, one)
    second = short.changed([f"{setting}={one}"])
    report, _ = train_or_read(second, corpus, two)
    again, outcome = train_or_read(second, corpus, two)
    assert (again, outcome) == (report, None)
    train(short.changed(["seed=1"]), corpus, one, force=True)
    what = {"begin": "has other weights than .*two began from; put", "first_stage": "is another first stage than .*two"}
    with pytest.raises(MomentseekError, match=what[setting]):
        train_or_read(second, corpus, two)
    assert json.loads((two / "report.json").read_text()) == report
    shutil.rmtree(one)  # nothing says that it was another
    assert train_or_read(second, corpus, two) == (report, None)


def test_a_first_stage_of_predictions_is_known_by_its_bytes(corpus: Data, short: TrainConfig, tmp_path: Path) -> None:
    train(short, corpus, tmp_path / "one")
    run = tmp_path / "videos.jsonl"
    write_run(predict(load(tmp_path / "one").model, corpus, "val", task="VR", k=4), run)
    second = short.changed([f"first_stage={run}"])
    report, _ = train_or_read(second, corpus, tmp_path / "two")
    assert report["first_stage"]["path"] == str(run)
    old = {key: value for key, value in report.items() if key != "first_stage"}  # as earlier versions wrote it
    write_run(predict(load(tmp_path / "one").model, corpus, "val", task="VR", k=3), run)
    with pytest.raises(MomentseekError, match="is another first stage than"):
        train_or_read(second, corpus, tmp_path / "two")
    (tmp_path / "two" / "report.json").write_text(json.dumps(old))
    assert train_or_read(second, corpus, tmp_path / "two") == (old, None)


def test_force_trains_anew(corpus: Data, short: TrainConfig, tmp_path: Path) -> None:
    steps: list[int] = []

    def tell(progress: Progress) -> None:
        steps.append(progress.step)

    first = train_seeds(short, corpus, tmp_path, 2)
    again = train_seeds(short, corpus, tmp_path, 2, tell=tell, force=True)
    assert steps.count(1) == 2
    assert [r["scores"] for r in again] == [r["scores"] for r in first]
    longer = train_seeds(short.changed(["lr=0.001"]), corpus, tmp_path, 1, force=True)  # another run in its place
    assert longer[0]["config"]["training"]["lr"] == 0.001
