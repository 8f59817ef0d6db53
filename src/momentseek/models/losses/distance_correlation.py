"""Distance correlation: 0 for independent samples, whatever binds them and however many columns they have."""

from __future__ import annotations

from torch import Tensor

FLOOR = 1e-9
"""What is added under roots and to divisors, so that equal rows have finite gradients."""


def distance_correlation(ones: Tensor, others: Tensor) -> Tensor:
    """Distance correlation of n paired samples (n, d) and (n, e) (Székely et al. 2007; TCN-DCM's loss).

    ``sqrt(mean AB) / sqrt(sqrt(mean AA) sqrt(mean BB))`` with A and B the doubly centred matrices of distances.

    >>> import torch
    >>> x = torch.tensor([[0.0], [1.0], [3.0]])
    >>> round(distance_correlation(x, 2 - 5 * x).item(), 3)
    1.0
    """
    a, b = (_centre(_distances(x)) for x in (ones, others))
    covariance = (a * b).mean().clamp(min=0)  # rounding can leave it just below
    spread = (a.square().mean().add(FLOOR).sqrt() * b.square().mean().add(FLOOR).sqrt()).sqrt()
    return (covariance + FLOOR).sqrt() / (spread + FLOOR)


def _distances(x: Tensor) -> Tensor:
    squares = x.square().sum(1)
    return (squares[:, None] + squares - 2 * x @ x.T).clamp(min=0).add(FLOOR).sqrt()


def _centre(matrix: Tensor) -> Tensor:
    rows = matrix.mean(0)
    return matrix - rows - rows[:, None] + matrix.mean()
