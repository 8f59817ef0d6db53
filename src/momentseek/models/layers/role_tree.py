"""A query's vector, gated by who does what in it: sentence, verbs, and the nouns each verb governs (MDD, eq. 3–7).

The sentence attends to its verbs, the verbs together attend to the nouns, each phrase (a verb with its nouns) becomes
one vector, and their mean opens or closes the columns of the sentence's vector: ``u = q + q ⊙ mean(g)``. A query
without verbs stays as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

VERB, NOUN = 1, 2
"""Values of ``Words.roles`` for verbs and nouns."""


class RoleTree(nn.Module):
    """The three-layer tree's attention; its three matrices serve both levels, as in the paper."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.top = nn.Linear(hidden, hidden, bias=False)
        self.down = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(2 * hidden, 1, bias=False)

    def attention(self, above: Tensor, below: Tensor) -> Tensor:
        """(queries, words): γ = W tanh(W_top above ‖ W_down below) (eq. 3, 5)."""
        joint = torch.cat([self.top(above)[:, None].expand_as(below), self.down(below)], dim=2)
        scores: Tensor = self.score(torch.tanh(joint))[..., 0]
        return scores

    def forward(self, sentence: Tensor, states: Tensor, roles: Tensor, phrase: Tensor) -> Tensor:
        """(queries, hidden), from the sentence (queries, hidden) and its words' states (queries, words, hidden)."""
        verb, noun = roles == VERB, roles == NOUN
        any_verb = verb.any(1)
        of_verbs = self.attention(sentence, states)
        alpha = _softmax(of_verbs, verb)
        verbs = torch.einsum("qn,qnd->qd", alpha, states)  # eq. 4
        of_nouns = self.attention(verbs, states)
        count = int(phrase.max().item()) + 1 if phrase.numel() else 0
        gate = torch.zeros_like(sentence)
        scores = torch.where(verb, of_verbs, of_nouns)
        for k in range(count):  # a handful: verbs of one query
            beta = _softmax(scores, (verb | noun) & (phrase == k))
            gate = gate + torch.einsum("qn,qnd->qd", beta, states)  # eq. 6; a phrase that is not there adds nothing
        phrases = torch.where(any_verb, (verb.sum(1)).clamp(min=1), torch.ones_like(roles[:, 0]))
        return sentence + sentence * gate / phrases[:, None]  # eq. 7


def _softmax(scores: Tensor, where: Tensor) -> Tensor:
    """Softmax over the words ``where`` says; zero for a query with none."""
    return torch.softmax(scores.masked_fill(~where, -1e9), dim=1) * where
