"""Optimisers: AdamW, and BertAdam as XML's public code uses it; weight decay leaves biases and norms alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from momentseek.training.config import TrainingSettings


class BertAdam(torch.optim.Optimizer):
    """Adam without bias correction, with decoupled weight decay.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g²;  p -= lr (m / (sqrt(v) + eps) + decay p).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Change the parameters by their gradients."""
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                update = m / (v.sqrt() + group["eps"])
                p.add_(update.add_(p, alpha=group["weight_decay"]), alpha=-group["lr"])
        return value


def build_optimiser(model: nn.Module, training: TrainingSettings) -> torch.optim.Optimizer:
    """The optimiser that the settings ask for, over a model's parameters."""
    named = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in named if p.ndim > 1], "weight_decay": training.weight_decay},
        {"params": [p for p in named if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    if training.optimiser == "bert_adam":
        return BertAdam(groups, training.lr)
    return torch.optim.AdamW(groups, training.lr)


def clip_gradients(model: nn.Module, limit: float, by: str) -> None:
    """Shorten gradients longer than ``limit``: of all parameters together, or of each by itself."""
    if not limit:
        return
    params = [p for p in model.parameters() if p.grad is not None]
    if by == "all":
        nn.utils.clip_grad_norm_(params, limit, foreach=False)
        return
    for p in params:
        nn.utils.clip_grad_norm_([p], limit, foreach=False)


def optimiser_tensors(used: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as named tensors."""
    return {f"{i}.{name}": value for i, kept in used.state_dict()["state"].items() for name, value in kept.items()}


def restore_optimiser(used: torch.optim.Optimizer, kept: dict[str, Tensor]) -> None:
    """Give an optimiser the memory ``optimiser_tensors`` wrote down."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in kept.items():
        i, name = key.split(".", 1)
        state.setdefault(int(i), {})[name] = value
    used.load_state_dict({"state": state, "param_groups": used.state_dict()["param_groups"]})
