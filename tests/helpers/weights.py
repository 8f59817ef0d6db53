"""Comparing the weights of models."""

from __future__ import annotations

import torch


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Whether two models have the same weights, bit for bit."""
    one, two = a.state_dict(), b.state_dict()
    return one.keys() == two.keys() and all(torch.equal(tensor, two[name]) for name, tensor in one.items())
