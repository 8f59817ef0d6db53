from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import write_run
from momentseek.models.features.data import Data
from momentseek.models.inference.prediction import predict
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.loop import train
from momentseek.models.training.session import refuse_other_limits, train_or_read, train_seeds


@pytest.fixture(scope="module")
def short(config: TrainConfig) -> TrainConfig:
    return config.with_changes(["steps=2", "validate_every=2"])


@pytest.fixture(scope="module")
def finished(simulated: Path, short: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished")
    with Data.open(simulated) as data:
        train_seeds(short, data, out, 1)
    return out


def test_numbers_of_other_data_are_not_reused(
    simulated: Path, spoilt: Path, short: TrainConfig, tmp_path: Path
) -> None:
    with Data.open(simulated) as data:
        reports = train_seeds(short, data, tmp_path / "runs", 1).reports
    copied = Path(shutil.copytree(simulated, tmp_path / "copied"))
    with Data.open(copied) as data:  # the same data, elsewhere
        assert train_seeds(short.with_changes([f"path={copied}"]), data, tmp_path / "runs", 1).reports == reports
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
    second = short.with_changes([f"{setting}={one}"])
    report, _ = train_or_read(second, corpus, two)
    again, outcome = train_or_read(second, corpus, two)
    assert (again, outcome) == (report, None)
    train(short.with_changes(["seed=1"]), corpus, one, force=True)
    what = {"begin": "has other weights than .*two began from; put", "first_stage": "is another first stage than .*two"}
    with pytest.raises(MomentseekError, match=what[setting]):
        train_or_read(second, corpus, two)
    assert json.loads((two / "report.json").read_text()) == report
    shutil.rmtree(one)  # nothing says that it was another
    assert train_or_read(second, corpus, two) == (report, None)


def test_a_first_stage_of_predictions_is_known_by_its_bytes(corpus: Data, short: TrainConfig, tmp_path: Path) -> None:
    train(short, corpus, tmp_path / "one")
    run = tmp_path / "videos.jsonl"
    write_run(predict(load_checkpoint(tmp_path / "one").model, corpus, "val", task="VR", k=4), run)
    second = short.with_changes([f"first_stage={run}"])
    report, _ = train_or_read(second, corpus, tmp_path / "two")
    assert report["first_stage"]["path"] == str(run)
    old = {key: value for key, value in report.items() if key != "first_stage"}  # as earlier versions wrote it
    write_run(predict(load_checkpoint(tmp_path / "one").model, corpus, "val", task="VR", k=3), run)
    with pytest.raises(MomentseekError, match="is another first stage than"):
        train_or_read(second, corpus, tmp_path / "two")
    (tmp_path / "two" / "report.json").write_text(json.dumps(old))
    assert train_or_read(second, corpus, tmp_path / "two") == (old, None)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (["steps=4"], "seed-0: holds finished training with steps=2 and not steps=4; choose another folder"),
        (["steps=1", "threads=1"], "steps=2 and not steps=1"),
        (["epochs=9"], "steps=2 and not epochs=9"),
        (["minutes=5"], "no minutes and not minutes=5"),
        (["patience=1"], "no patience and not patience=1"),
    ],
    ids=["longer", "shorter", "epochs", "minutes", "patience"],
)
def test_a_finished_run_is_not_made_another(
    finished: Path, corpus: Data, short: TrainConfig, settings: list[str], what: str
) -> None:
    before = (finished / "seed-0" / "report.json").read_text()
    with pytest.raises(MomentseekError, match=what):
        train_seeds(short.with_changes(settings), corpus, finished, 1)
    assert (finished / "seed-0" / "report.json").read_text() == before


def test_continues_with_more_patience(finished: Path, short: TrainConfig, tmp_path: Path) -> None:
    report = json.loads((finished / "seed-0" / "report.json").read_text())
    report["config"]["training"]["patience"] = 2
    report["stopped"] = "patience"
    for more in ("patience=3", "patience="):
        refuse_other_limits(report, short.with_changes([more]), tmp_path)
    for other in ("patience=1", "minutes=1"):
        with pytest.raises(MomentseekError, match="holds finished training with"):
            refuse_other_limits(report, short.with_changes(["patience=2", other]), tmp_path)


def test_force_trains_again(corpus: Data, short: TrainConfig, tmp_path: Path) -> None:
    steps: list[int] = []

    def tell(progress: TrainingProgress) -> None:
        steps.append(progress.step)

    first = train_seeds(short, corpus, tmp_path, 2).reports
    again = train_seeds(short, corpus, tmp_path, 2, progress=tell, force=True).reports
    assert steps.count(1) == 2
    assert [r["scores"] for r in again] == [r["scores"] for r in first]
    longer = train_seeds(short.with_changes(["lr=0.001"]), corpus, tmp_path, 1, force=True).reports  # in its place
    assert longer[0]["config"]["training"]["lr"] == 0.001
