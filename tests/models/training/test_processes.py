"""Two processes that share gradients, against one that computes what both would."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from processes import start_momentseek
from weights import same_weights

from momentseek.models.features.data import Data
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import TrainingLoop, step_seed
from momentseek.models.training.optimisers import clip_gradients, rate_factor
from momentseek.models.training.processes import Interrupts, Processes
from momentseek.models.training.setup import prepare_training


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.mark.slow
def test_two_processes_do_what_one_would_do_for_both(
    simulated: Path, corpus: Data, config: TrainConfig, tmp_path: Path
) -> None:
    config = config.with_changes(["steps=3"])
    (tmp_path / "config.toml").write_text(config.text())
    arguments = ["train", "--config", tmp_path / "config.toml", "--data", simulated, "--out", tmp_path / "two", "-q"]
    around = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    both = [start_momentseek(*arguments, env=os.environ | around | {"RANK": rank}) for rank in "01"]
    for process in both:
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said

    prepared = prepare_training(config, corpus, tmp_path / "one", False, Processes())
    ranks = [TrainingLoop(prepared, tmp_path / "one", Processes(r, 2), Interrupts(), None) for r in range(2)]
    model, training = prepared.model, config.training
    model.train()
    for step in range(3):
        prepared.optimiser.zero_grad()
        for rank, loop in enumerate(ranks):
            torch.manual_seed(step_seed(training.seed, step, rank, 0))
            rng = torch.Generator().manual_seed(step_seed(training.seed, step, rank, 1))
            terms = model.loss(loop.batch_of(step), 0, rng)
            (torch.stack(list(terms.values())).sum() / 2).backward()  # type: ignore[no-untyped-call]
        clip_gradients(model, training.clip, training.clip_by)
        for group in prepared.optimiser.param_groups:
            group["lr"] = training.lr * rate_factor(training.schedule, step, 3, training.warmup)
        prepared.optimiser.step()
    ours = load_checkpoint(tmp_path / "two" / "last.safetensors").model
    for name, value in model.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-4, atol=1e-6, msg=name)
    assert not same_weights(ours, prepare_training(config, corpus, tmp_path / "fresh", False, Processes()).model)
    assert ranks[0].trackers is not None
    ranks[0].trackers.finish(None)


def test_gradients_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not summed, which Adam would not notice."""
    monkeypatch.setattr(dist, "all_reduce", lambda total: total.mul_(2))  # the other process has the same gradients
    layer = torch.nn.Linear(3, 2)
    layer(torch.ones(1, 3)).sum().backward()  # type: ignore[no-untyped-call]
    before = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    Processes(0, 2).average_gradients(layer)
    for p, was in zip(layer.parameters(), before, strict=True):
        torch.testing.assert_close(p.grad, was)


def test_alone_there_is_nothing_to_share() -> None:
    alone = Processes()
    assert alone.first
    assert alone.agree(0.5) == 0.5
    assert alone.any(True)
    assert not alone.any(False)
