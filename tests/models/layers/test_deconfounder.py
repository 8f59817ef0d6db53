"""The deconfounder against equations 11 and 12, and the sizes of its dictionaries."""

from __future__ import annotations

import math

import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.zoo.mdd import Branch, Deconfounder, branches_of


def test_dictionaries_have_the_papers_sizes() -> None:
    d = Deconfounder("L*A*U", 512, 4, 16, 300)
    assert [tuple(b.entries.shape) for b in d.branches] == [(256, 512), (80, 300), (80, 512)]
    learned = {name for name, _ in d.named_parameters() if name.endswith("entries")}
    assert learned == {"branches.1.entries", "branches.2.entries"}


def test_a_branch_is_multi_head_attention_over_its_dictionary() -> None:
    torch.manual_seed(0)
    branch = Branch(torch.randn(5, 6), 8, 2, learned=True)
    query = torch.randn(2, 3, 8)
    ours = branch(query)
    keys, values = branch.entries @ branch.keys.weight.T, branch.entries @ branch.values.weight.T
    for n in range(2):
        for c in range(3):
            heads = []
            for h in range(2):
                part = slice(4 * h, 4 * h + 4)
                weights = torch.softmax(torch.stack([query[n, c, part] @ k[part] for k in keys]) / math.sqrt(4), 0)
                heads.append(sum(w * v[part] for w, v in zip(weights, values, strict=True)))
            torch.testing.assert_close(ours[n, c], torch.cat(heads))


def test_branches_are_multiplied_and_added_to_the_moments() -> None:
    torch.manual_seed(0)
    d = Deconfounder("L*U*U", 8, 2, 4, 6, unobserved=3)
    query, moments = torch.randn(2, 8), torch.randn(2, 5, 8)
    asked = d.joint(d.of_query(query)[:, None] + d.of_moment(moments))
    one, two, three = (b(asked) for b in d.branches)
    torch.testing.assert_close(d(query, moments), moments + one * two * three)


def test_actions_begin_from_word_features() -> None:
    d = Deconfounder("A", 8, 2, 4, 6, actions=4)
    d.set_actions(torch.ones(3, 6))
    assert d.branches[0].entries[:3].eq(1).all()
    assert not d.branches[0].entries[3].eq(1).any()


def test_an_unknown_confounder_is_named() -> None:
    with pytest.raises(MomentseekError, match="no confounder 'X'"):
        branches_of("L*X")
