"""Optimisers (AdamW, BertAdam as in XML's public code, SGD) and learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from momentseek.models.model import REST, Phase, group_of
from momentseek.models.training.config import TrainingSettings

GROUP = "group"
"""The key of the rate group's name in an optimiser's parameter groups."""


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
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update the parameters by their gradients."""
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
    """Build the optimiser of the settings; its parameter groups have the names of the model's rate groups."""
    names: tuple[str, ...] = getattr(model, "rate_groups", ())
    by_group: dict[str, list[nn.Parameter]] = {group: [] for group in (REST, *names)}
    for name, p in model.named_parameters():
        if p.requires_grad:
            by_group[group_of(name, names)].append(p)
    groups = [
        {"params": [p for p in params if (p.ndim > 1) is decays], "weight_decay": decay, GROUP: group}
        for group, params in by_group.items()
        for decays, decay in ((True, training.weight_decay), (False, 0.0))
    ]
    groups = [g for g in groups if g["params"]]
    if training.optimiser == "sgd":
        return torch.optim.SGD(groups, training.lr, training.momentum)
    return (BertAdam if training.optimiser == "bert_adam" else torch.optim.AdamW)(groups, training.lr, training.betas)


def set_rates(used: torch.optim.Optimizer, rate: float, phase: Phase) -> None:
    """Set the learning rate of every group for a phase."""
    for group in used.param_groups:
        group["lr"] = rate * phase.rate(group[GROUP])


def spare_frozen(used: torch.optim.Optimizer, phase: Phase) -> None:
    """Drop the gradients of groups whose rate is 0, so that neither their weights nor their optimiser state change."""
    for group in used.param_groups:
        if phase.rate(group[GROUP]) == 0:
            for p in group["params"]:
                p.grad = None


def clip_gradients(model: nn.Module, limit: float, by: str) -> None:
    """Clip gradients to ``limit``: the norm of ``all`` parameters, of each ``tensor``, or each ``value``."""
    if not limit:
        return
    params = [p for p in model.parameters() if p.grad is not None]
    if by == "value":
        nn.utils.clip_grad_value_(params, limit, foreach=False)
        return
    if by == "all":
        nn.utils.clip_grad_norm_(params, limit, foreach=False)
        return
    for p in params:
        nn.utils.clip_grad_norm_([p], limit, foreach=False)


def optimiser_tensors(used: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as named tensors."""
    state = used.state_dict()["state"]
    return {f"{i}.{n}": value for i, kept in state.items() for n, value in kept.items() if value is not None}


def restore_optimiser(used: torch.optim.Optimizer, kept: dict[str, Tensor]) -> None:
    """Restore the state that ``optimiser_tensors`` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in kept.items():
        i, name = key.split(".", 1)
        state.setdefault(int(i), {})[name] = value
    used.load_state_dict({"state": state, "param_groups": used.state_dict()["param_groups"]})


def rate_factor(schedule: str, step: int, total: int, warmup: float = 0.0) -> float:
    """The factor of the learning rate at step ``step`` (from 0) of ``total``.

    It rises from 0 during the first ``warmup`` share, so the first step of BertAdam changes nothing, as in the public
    code. Then it stays at 1 (``constant``) or falls to 0, in a straight line (``linear``) or along half a ``cosine``.

    >>> [rate_factor("linear", s, 10, warmup=0.2) for s in (0, 1, 2, 6, 10)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    >>> [round(rate_factor("cosine", s, 4), 3) for s in range(5)]
    [1.0, 0.854, 0.5, 0.146, 0.0]
    """
    done = min(step / max(total, 1), 1.0)
    if done < warmup:
        return done / warmup
    left = 1 - (done - warmup) / (1 - warmup)
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return left
    return 0.5 * (1 - math.cos(math.pi * left))
