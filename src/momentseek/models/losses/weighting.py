"""Pairs weigh by how similar query and caption are (TVR-Ranking, appendix C.1)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from momentseek.errors import MomentseekError

WEIGHTINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda similarity: similarity.clamp(min=0.0),
    "exponential": lambda similarity: torch.exp(10.0 * (similarity - 0.7)),
    "none": torch.ones_like,
}
"""The paper multiplies by the similarity; runs of the public code of March 2024 by exp(10 (similarity - 0.7))."""


def pair_weights(similarity: Tensor, how: str) -> Tensor:
    """The weight of each pair in the loss, from the similarity of query and caption.

    >>> [round(w, 2) for w in pair_weights(torch.tensor([0.7, 0.9]), "exponential").tolist()]
    [1.0, 7.39]
    """
    if how not in WEIGHTINGS:
        raise MomentseekError(f"there is no weighting {how!r}; choose {', '.join(WEIGHTINGS)}")
    return WEIGHTINGS[how](similarity)


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """The mean of the values, each multiplied by its weight (which are not made to add up to 1)."""
    return (values * weight).mean()
