"""An LSTM over sequences of different lengths, in one or both directions, that padding cannot reach."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """States of an LSTM for every step, and the state after the last real one.

    Reading forwards, padding comes after everything that counts. Reading backwards, each row is turned round by its
    own length first, so padding comes last there too. Both directions together give ``width`` columns.
    """

    def __init__(self, dim: int, width: int, *, both_ways: bool = True) -> None:
        super().__init__()
        self.forwards = nn.LSTM(dim, width // 2 if both_ways else width, batch_first=True)
        self.backwards = nn.LSTM(dim, width - width // 2, batch_first=True) if both_ways else None

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, T, dim), (n, T) -> states (n, T, width), zero in the padding, and last states (n, width)."""
        counts = mask.sum(1)
        after = (counts - 1).clamp(min=0)[:, None, None]
        states = self.forwards(x)[0]
        last = states.gather(1, after.expand(-1, 1, states.shape[2])).squeeze(1)
        if self.backwards is not None:
            turned = _turn(self.backwards(_turn(x, counts))[0], counts)
            states = torch.cat([states, turned], dim=-1)
            last = torch.cat([last, turned[:, 0]], dim=-1)
        return states * mask[..., None], last


def _turn(x: Tensor, counts: Tensor) -> Tensor:
    """The first ``counts[i]`` steps of row i in reverse; the rest stay where they are.

    >>> _turn(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([2])).flatten().tolist()
    [2.0, 1.0, 3.0]
    """
    at = torch.arange(x.shape[1], device=x.device)
    index = torch.where(at < counts[:, None], counts[:, None] - 1 - at, at)
    return x.gather(1, index[..., None].expand_as(x))
