"""A model's look at the training queries before its first step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from momentseek.core.language import resolve_parser
from momentseek.models.features.data import Data
from momentseek.models.training.batches import Batches
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.models.zoo.mdd import Mdd, frequent_verbs


def config(*settings: str) -> TrainConfig:
    size = {"hidden": 8, "max_clips": 6, "longest": 6, "map_layers": 1, "kernel": 3, "text_layers": 1, "heads": 2}
    model = {"name": "mdd", "fit": "stretch", "modalities": "video", "confounders": "A*U", "actions": 6, **size}
    training = {"batch": 6, "steps": 1, "lr": 0.0, "measure": "R@1[IoU>=0.3]", "task": "SVMR", "report": []}
    data = {"train": "train_top01", "validate": "val"}
    return TrainConfig.of({"model": model, "training": training, "data": data}).with_changes(settings)


def test_it_is_before_the_first_step_of_a_new_run_only(
    corpus: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(config(), corpus, tmp_path / "run")
    kept, made = load_checkpoint(tmp_path / "run").model, config()
    assert kept.config.parse == resolve_parser("auto") != "auto"  # type: ignore[attr-defined]
    batches = Batches(corpus, corpus.split("train_top01"), made.model_config, made.training)
    names, means = frequent_verbs(batches.queries(), 6)
    assert len(names) > 1
    entries = kept.state_dict()["deconfounder.branches.0.entries"]
    assert torch.equal(entries[: len(names)], torch.from_numpy(means))

    def refused(*_: object) -> None:
        raise AssertionError("prepared again")

    monkeypatch.setattr(Mdd, "prepare", refused)
    train(config("steps=2"), corpus, tmp_path / "run", resume=True)
    train(config(f"begin={tmp_path / 'run'}"), corpus, tmp_path / "next")
    with pytest.raises(AssertionError, match="prepared again"):
        train(config(), corpus, tmp_path / "other")
