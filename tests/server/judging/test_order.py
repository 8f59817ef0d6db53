from __future__ import annotations

from collections import Counter

from momentseek.server.judging.annotate import annotator_order
from momentseek.server.judging.consensus import CandidateRow


def rows(n: int, query: int = 1, first: int = 0) -> list[CandidateRow]:
    return [
        CandidateRow(i + 1, query, "q", i + 1, 2 if first and i >= first else 1, "h", "a", "a", 60.0, i, i + 1.0, 0.5)
        for i in range(n)
    ]


def test_everybody_has_an_order_of_their_own_that_stays() -> None:
    orders = [[c.id for c in annotator_order(rows(20), who)] for who in ("ann", "bob", "cy", "ann")]
    assert orders[0] == orders[3]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(1, 21)) for order in orders)


def test_the_second_batch_comes_after_the_first() -> None:
    order = annotator_order(rows(20, first=10), "ann")
    assert [c.batch for c in order] == [1] * 10 + [2] * 10


def test_one_that_is_left_out_moves_no_other() -> None:
    whole = [c.id for c in annotator_order(rows(20), "ann")]
    assert [c.id for c in annotator_order([c for c in rows(20) if c.id != 7], "ann")] == [i for i in whole if i != 7]


def test_no_place_is_preferred() -> None:
    firsts = Counter(annotator_order(rows(5), f"annotator {n}")[0].id for n in range(2000))
    assert all(330 < firsts[i] < 470 for i in range(1, 6))  # 400 each; the bounds are four standard deviations away
