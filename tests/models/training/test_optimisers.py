from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from momentseek.core.errors import MomentseekError
from momentseek.models.training.config import TrainingSettings
from momentseek.models.training.optimisers import (
    BertAdam,
    build_optimiser,
    clip_gradients,
    optimiser_tensors,
    restore_optimiser,
)


def test_bert_adam_is_its_formula() -> None:
    rng = np.random.default_rng(0)
    p0, gradients = rng.normal(size=5), rng.normal(size=(4, 5))
    p = nn.Parameter(torch.tensor(p0))
    used = BertAdam([p], lr=0.1, weight_decay=0.01)
    m, v, x = np.zeros(5), np.zeros(5), p0.copy()
    for g in gradients:
        p.grad = torch.tensor(g)
        used.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x = x - 0.1 * (m / (np.sqrt(v) + 1e-6) + 0.01 * x)
    np.testing.assert_allclose(p.detach().numpy(), x, rtol=1e-12)


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_betas_are_a_setting_with_the_usual_default(name: str) -> None:
    for settings, betas in (({}, (0.9, 0.999)), ({"betas": (0.9, 0.99)}, (0.9, 0.99))):
        used = build_optimiser(nn.Linear(3, 3), TrainingSettings(optimiser=name, **settings))
        assert [group["betas"] for group in used.param_groups] == [betas] * len(used.param_groups)
    for wrong in ((0.9,), (0.9, 1.0), ("a", "b")):
        with pytest.raises(MomentseekError, match=r"^training: betas are two numbers from 0 to below 1, not"):
            TrainingSettings(betas=wrong)


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_biases_and_norms_do_not_decay(name: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    used = build_optimiser(model, TrainingSettings(optimiser=name, weight_decay=0.5))
    decay = {id(p): g["weight_decay"] for g in used.param_groups for p in g["params"]}
    assert {n: decay[id(p)] for n, p in model.named_parameters()} == {
        "0.weight": 0.5,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
    }


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_an_optimisers_memory_can_be_restored(name: str) -> None:
    def step(model: nn.Module, used: torch.optim.Optimizer, seed: int) -> None:
        torch.manual_seed(seed)
        used.zero_grad()
        model(torch.randn(4, 3)).square().sum().backward()
        used.step()

    torch.manual_seed(0)
    one, two = nn.Linear(3, 2), nn.Linear(3, 2)
    first = build_optimiser(one, TrainingSettings(optimiser=name, lr=0.1))
    for seed in range(3):
        step(one, first, seed)
    two.load_state_dict(one.state_dict())
    second = build_optimiser(two, TrainingSettings(optimiser=name, lr=0.1))
    restore_optimiser(second, {n: t.clone() for n, t in optimiser_tensors(first).items()})
    step(one, first, 9)
    step(two, second, 9)
    assert torch.equal(one.weight, two.weight)


def gradients(*lengths: float) -> nn.ParameterList:
    params = nn.ParameterList(nn.Parameter(torch.zeros(2)) for _ in lengths)
    for p, length in zip(params, lengths, strict=True):
        p.grad = torch.tensor([length, 0.0])
    return params


@pytest.mark.parametrize(
    ("by", "limit", "after"),
    [("tensor", 1.0, [1.0, 0.5]), ("all", 1.0, [3 / 9.25**0.5, 0.5 / 9.25**0.5]), ("all", 0.0, [3.0, 0.5])],
    ids=["each", "together", "not"],
)
def test_gradients_are_shortened(by: str, limit: float, after: list[float]) -> None:
    params = gradients(3.0, 0.5)
    clip_gradients(params, limit, by)
    assert [float(p.grad.norm()) for p in params if p.grad is not None] == pytest.approx(after, rel=1e-4)
