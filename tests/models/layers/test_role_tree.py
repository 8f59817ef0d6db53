"""The role tree against equations 3 to 7, query by query."""

from __future__ import annotations

import torch

from momentseek.core.language import NOUN, VERB
from momentseek.models.zoo.mdd import RoleTree

ROLES = torch.tensor([[0, 2, 1, 0, 2, 0], [1, 2, 1, 2, 2, 0], [2, 0, 0, 0, 0, 0]])
PHRASE = torch.tensor([[-1, 0, 0, -1, 0, -1], [0, 0, 1, 1, 1, -1], [-1] * 6])


def test_equals_the_equations_in_loops() -> None:
    torch.manual_seed(0)
    tree = RoleTree(4)
    sentence, states = torch.randn(3, 4), torch.randn(3, 6, 4)
    ours = tree(sentence, states, ROLES, PHRASE)
    for q in range(3):

        def gamma(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
            return tree.score.weight[0] @ torch.tanh(torch.cat([tree.top.weight @ above, tree.down.weight @ below]))

        verbs = [i for i in range(6) if ROLES[q, i] == VERB]
        if not verbs:
            torch.testing.assert_close(ours[q], sentence[q])
            continue
        of_verb = {i: gamma(sentence[q], states[q, i]) for i in verbs}
        alpha = torch.softmax(torch.stack(list(of_verb.values())), 0)
        together = sum(a * states[q, i] for a, i in zip(alpha, verbs, strict=True))
        total = torch.zeros(4)
        for k, verb in enumerate(verbs):
            nouns = [i for i in range(6) if ROLES[q, i] == NOUN and PHRASE[q, i] == k]
            beta = torch.softmax(torch.stack([of_verb[verb], *(gamma(together, states[q, i]) for i in nouns)]), 0)
            total = total + sum(b * states[q, i] for b, i in zip(beta, [verb, *nouns], strict=True))
        torch.testing.assert_close(ours[q], sentence[q] + sentence[q] * total / len(verbs))
