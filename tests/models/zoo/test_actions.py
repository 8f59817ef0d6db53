from __future__ import annotations

import numpy as np
import pytest
import torch

from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.mdd import Branch, Floats, Mdd, frequent_verbs

TEXTS = ["she opens the door", "he is opening a box", "they run", "a man walks", "she walked off", "the watch"]


def queries(seed: int = 0) -> list[tuple[str, Floats]]:
    rng = np.random.default_rng(seed)
    return [(text, rng.normal(size=(len(text.split()), 6)).astype(np.float32)) for text in TEXTS]


def test_verbs_go_by_frequency_and_then_the_alphabet() -> None:
    names, means = frequent_verbs(queries(), 9, "rules")
    assert names == ["open", "walk", "run"]
    rows = [r for _, r in queries()]
    expected = [(rows[0][1] + rows[1][2]) / 2, (rows[3][2] + rows[4][1]) / 2, rows[2][1]]
    assert means == pytest.approx(np.array(expected), abs=1e-6)


def test_rows_that_do_not_fit_the_words_are_passed_over() -> None:
    long = np.ones((9, 6), np.float32)
    assert frequent_verbs([("she opens it", long), ("", long)], 5, "rules")[0] == []


def mdd(confounders: str) -> Mdd:
    torch.manual_seed(0)
    settings = {"hidden": 12, "max_clips": 8, "longest": 8, "map_layers": 1, "heads": 2, "actions": 2, "unobserved": 3}
    settings |= {"parse": "rules", "tree": False}
    made = build("mdd", {**settings, "confounders": confounders}, Dims(query=6, video=9, subtitle=None))
    assert isinstance(made, Mdd)
    return made


def test_the_dictionary_of_actions_begins_from_them() -> None:
    made, before = mdd("L*A*U"), mdd("L*A*U")
    made.prepare(iter(queries()))
    assert made.deconfounder is not None
    branch = made.deconfounder.branches[1]
    assert isinstance(branch, Branch)
    _, means = frequent_verbs(queries(), 2, "rules")
    assert torch.equal(branch.entries, torch.from_numpy(means))
    changed = [n for n, t in made.state_dict().items() if not torch.equal(t, before.state_dict()[n])]
    assert changed == ["deconfounder.branches.1.entries"]


@pytest.mark.parametrize("confounders", ["L*U*U", "none"])
def test_without_actions_no_query_is_read(confounders: str) -> None:
    def unread() -> object:
        raise AssertionError("read")
        yield

    mdd(confounders).prepare(unread())  # type: ignore[arg-type]
