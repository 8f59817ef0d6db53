"""AxIoU, AP and DCG: definitions and the axioms of the AxIoU supplement, on lists that differ in one moment."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measuring.measures.reference import best_overlaps, lists
from tests.measuring.measures.strategies import pairs

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import Alignment, parse


@given(pairs(graded=False))
def test_definitions(pair):
    truth, run = pair
    view = Alignment(run, truth)
    k = 5
    relevance = [(best_overlaps(j, p) + [0.0] * k)[:k] for j, p in lists(truth, run)]
    axiou = [sum(max(r[: i + 1]) for i in range(k)) / k for r in relevance]
    ap = [sum(sum(x > 0.5 for x in r[: i + 1]) / (i + 1) for i in range(k)) / k for r in relevance]
    dcg = [sum((2**x - 1) / math.log2(i + 2) for i, x in enumerate(r)) for r in relevance]
    assert parse("AxIoU@5")(view).tolist() == pytest.approx(axiou)
    assert parse("AP@5[IoU>0.5]")(view).tolist() == pytest.approx(ap)
    assert parse("DCG@5[gain=exp2]")(view).tolist() == pytest.approx(dcg)
    assert parse("mIoU")(view).tolist() == pytest.approx([r[0] for r in relevance])


def score(name: str, ious: list[float]) -> float:
    """The measure of a list whose predictions overlap the only true moment, 0–100 s, by these percentages."""
    truth = Judgements.from_rows([("q", "v", 0, 100, 1)])
    run = Run.from_rows([("q", "v", 0, percent, -i) for i, percent in enumerate(ious)])
    return float(parse(name)(Alignment(run, truth))[0])


percentages = st.lists(st.integers(1, 100), min_size=2, max_size=8)


@given(percentages, st.data())
def test_axiou_is_invariant_below_the_best(ious, data):
    k = data.draw(st.integers(1, len(ious) - 1))
    better = data.draw(st.integers(1, max(ious[:k])))
    worse = data.draw(st.integers(1, better))
    before, after = ([*ious[:k], x, *ious[k + 1 :]] for x in (worse, better))
    assert score("AxIoU@8", before) == score("AxIoU@8", after)


@given(percentages, st.data())
def test_axiou_rises_with_every_new_best(ious, data):
    k = data.draw(st.integers(0, len(ious) - 1))
    above = max(ious[:k], default=0)
    if above >= 99:
        return
    better = data.draw(st.integers(max(above, 1) + 1, 100))
    worse = data.draw(st.integers(1, better - 1))
    before, after = ([*ious[:k], x, *ious[k + 1 :]] for x in (worse, better))
    assert score("AxIoU@8", before) < score("AxIoU@8", after)


def test_recall_does_not_see_a_better_best_moment():
    assert score("R@2[IoU>=0.5]", [20, 30]) == score("R@2[IoU>=0.5]", [20, 45])
    assert score("R@2[IoU>=0.5]", [60, 70]) == score("R@2[IoU>=0.5]", [60, 90])


@pytest.mark.parametrize("name", ["AP@3[IoU>0.5]", "DCG@3", "DCG@3[gain=exp2]", "DCG@3[discount=rank]"])
def test_ap_and_dcg_reward_redundant_moments(name):
    assert score(name, [90, 40, 10]) < score(name, [90, 60, 10])
