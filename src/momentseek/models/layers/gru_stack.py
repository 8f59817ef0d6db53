"""Gated recurrent units in layers, read forwards, with the states of every layer at every step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.layers.dropout import Dropout


class GruStack(nn.Module):
    """Layers of GRUs over sequences of different lengths; padding comes after everything that counts."""

    def __init__(self, dim: int, hidden: int, layers: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.GRU(dim if i == 0 else hidden, hidden, batch_first=True) for i in range(layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, begin: Tensor | None = None) -> Tensor:
        """(n, T, dim) -> states (n, T, layers, hidden); ``begin`` (n, layers, hidden) are the states before the first.

        >>> GruStack(3, 4, 2)(torch.zeros(1, 5, 3)).shape
        torch.Size([1, 5, 2, 4])
        """
        found: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            first = None if begin is None else begin[:, number].contiguous()[None]
            x = layer(x if number == 0 else self.dropout(x), first)[0]
            found.append(x)
        return torch.stack(found, dim=2)


def states_at(states: Tensor, place: Tensor) -> Tensor:
    """(n, layers, hidden): the states (n, T, layers, hidden) of row i after step ``place[i]``."""
    return states[torch.arange(len(states), device=states.device), place]
