"""Phases: each part of a model has the rate its phase says, what is frozen stays, and training resumes exactly."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from weights import same_weights

from momentseek.models.features.data import Data
from momentseek.models.model import Phase
from momentseek.models.registry import MODELS
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig, TrainingSettings
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.loop import train
from momentseek.models.training.optimisers import build_optimiser, set_rates, spare_frozen
from momentseek.models.zoo.tef_only import TEFOnly


class Alternating(TEFOnly):
    """Trains its moments in even pairs of steps and its queries, at half the rate, in odd ones."""

    rate_groups = ("moment", "query")

    def phase_at(self, step: int, epoch: int) -> Phase:
        if step // 2 % 2:
            return Phase("queries", {"moment": 0.0, "query": 0.5})
        return Phase("moments", {"query": 0.0, "": 0.0})


@pytest.fixture
def phased(monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    monkeypatch.setitem(MODELS, "alternating", replace(MODELS["tef-only"], name="alternating", model=Alternating))
    training = {"batch": 6, "steps": 7, "validate_every": 4, "lr": 0.01, "report": [], "weight_decay": 0.1}
    return TrainConfig.of(
        {
            "model": {"name": "alternating", "hidden": 8, "max_clips": 40, "fit": "resample"},
            "training": training,
            "data": {"train": "train_top20", "validate": "val"},
        }
    )


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_frozen_parts_do_not_change_and_others_use_their_rate(optimiser: str) -> None:
    class Parts(nn.Module):
        rate_groups = ("a", "a.fast")

        def __init__(self) -> None:
            super().__init__()
            self.a = nn.ModuleDict({"slow": nn.Linear(2, 2), "fast": nn.Linear(2, 2)})
            self.b = nn.Linear(2, 2)

    model = Parts()
    used = build_optimiser(model, TrainingSettings(optimiser=optimiser, weight_decay=0.0))
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    phase = Phase("x", {"a": 0.1, "": 0.0})
    set_rates(used, 0.5, phase)
    spare_frozen(used, phase)
    used.step()
    moved = {n: float((before[n] - p.detach()).abs().mean()) for n, p in model.named_parameters()}
    for name, distance in moved.items():
        expected = 0.0 if name.startswith("b") else 0.5 if "fast" in name else 0.05
        assert distance == pytest.approx(expected, abs=1e-6), name


def test_a_model_without_phases_has_the_groups_it_always_had() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    groups = build_optimiser(model, TrainingSettings()).param_groups
    assert [[p.ndim for p in g["params"]] for g in groups] == [[2], [1, 1, 1]]


def test_phases_take_turns_and_training_resumes_within_one(phased: TrainConfig, corpus: Data, tmp_path: Path) -> None:
    train(phased, corpus, tmp_path / "straight")

    def stop(progress: TrainingProgress) -> None:
        if progress.step == 3 and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    begun = train(phased, corpus, tmp_path / "stopped", progress=stop)
    assert begun.stopped == "interrupted"
    half = load_checkpoint(tmp_path / "stopped" / "last.safetensors")
    train(phased, corpus, tmp_path / "stopped", resume=True)
    one, two = (load_checkpoint(tmp_path / name / "last.safetensors") for name in ("straight", "stopped"))
    assert same_weights(one.model, two.model)
    assert all(torch.equal(t, two.optimiser[n]) for n, t in one.optimiser.items())

    train(phased.with_changes(["steps=2"]), corpus, tmp_path / "two")
    after = load_checkpoint(tmp_path / "two" / "last.safetensors").model
    changed = {n for n, t in after.state_dict().items() if not torch.equal(t, half.model.state_dict()[n])}
    assert {n.split(".")[0] for n in changed} == {"query", "words"}  # step 3 is the first of the second phase


def test_gradients_are_cut_number_by_number() -> None:
    from momentseek.models.training.optimisers import clip_gradients

    layer = nn.Linear(2, 1)
    layer.weight.grad, layer.bias.grad = torch.tensor([[3.0, -0.5]]), torch.tensor([-2.0])
    clip_gradients(layer, 1.0, "value")
    assert layer.weight.grad.tolist() == [[1.0, -0.5]]
    assert layer.bias.grad.tolist() == [-1.0]
