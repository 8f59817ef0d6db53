"""What moments and queries have in common with everything else: dictionaries of confounders, weighed and mixed in.

Intervening on a confounder, ``P(Y|do(Q, V)) = Σ_c P(c) P(Y|Q, V, c)``, is approximated by the expectation of a
dictionary's entries under attention from the query-moment pair (MDD, eq. 9–12). Branches are multiplied element by
element and the product is added to the moment's features. A combination is written as its branches with ``*`` between:
``L`` for locations (fixed waves), ``A`` for actions (begun from word features), ``U`` for the unobserved (learned).
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.errors import MomentseekError
from momentseek.models.layers.positions_2d import grid_2d

CONFOUNDERS = {"L": "locations", "A": "actions", "U": "unobserved"}


def branches_of(combination: str) -> list[str]:
    """The branches of a combination.

    >>> branches_of("L*U*U")
    ['L', 'U', 'U']
    """
    kinds = [k.strip().upper() for k in combination.split("*")]
    if unknown := [k for k in kinds if k not in CONFOUNDERS]:
        raise MomentseekError(f"there is no confounder {unknown[0]!r}; combine L, A and U with *, such as L*U*U")
    return kinds


class Branch(nn.Module):
    """One dictionary and the multi-head attention over it (eq. 12)."""

    def __init__(self, entries: Tensor, hidden: int, heads: int, learned: bool) -> None:
        super().__init__()
        self.heads = heads
        self.entries: Tensor
        if learned:
            self.entries = nn.Parameter(entries)
        else:
            self.register_buffer("entries", entries)
        self.keys = nn.Linear(entries.shape[1], hidden, bias=False)
        self.values = nn.Linear(entries.shape[1], hidden, bias=False)

    def forward(self, query: Tensor) -> Tensor:
        """(n, cells, hidden) → the expectation over the dictionary, of the same shape."""
        n, cells, hidden = query.shape
        shape = (1, -1, self.heads, hidden // self.heads)
        q, k, v = (
            x.reshape(shape).transpose(1, 2) for x in (query, self.keys(self.entries), self.values(self.entries))
        )
        # one long row of pairs that share keys and values: the weights (pairs x entries) are never held
        mixed = F.scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).reshape(n, cells, hidden)


class Deconfounder(nn.Module):
    """The branches of a combination, and the query they share."""

    def __init__(
        self, combination: str, hidden: int, heads: int, clips: int, word_dim: int, *, actions: int = 80,
        unobserved: int = 80,
    ) -> None:  # fmt: skip
        super().__init__()
        self.of_query, self.of_moment = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.joint = nn.Linear(hidden, hidden)
        self.kinds = branches_of(combination)
        made = {
            "L": lambda: Branch(grid_2d(clips, hidden), hidden, heads, learned=False),
            "A": lambda: Branch(torch.randn(actions, word_dim) / math.sqrt(word_dim), hidden, heads, learned=True),
            "U": lambda: Branch(torch.randn(unobserved, hidden), hidden, heads, learned=True),
        }
        self.branches = nn.ModuleList(made[kind]() for kind in self.kinds)

    def set_actions(self, vectors: Tensor) -> None:
        """Begin the dictionaries of actions from word features (n, word_dim), the most frequent verb's first."""
        for kind, branch in zip(self.kinds, self.branches, strict=True):
            if kind == "A":
                entries = cast(Branch, branch).entries
                with torch.no_grad():
                    entries[: len(vectors)] = vectors[: len(entries)]

    def forward(self, query: Tensor, moments: Tensor) -> Tensor:
        """(n, cells, hidden): ``M + M_1 ⊙ M_2 ⊙ …`` for queries (n, hidden) and moments (n, cells, hidden) (eq. 11)."""
        asked = self.joint(self.of_query(query)[:, None] + self.of_moment(moments))
        product = torch.ones_like(moments)
        for branch in self.branches:
            product = product * branch(asked)
        return moments + product
