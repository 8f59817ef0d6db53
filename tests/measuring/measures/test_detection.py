"""mAP, HIT and SaliencyAP, as QVHighlights computes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measuring.measures.strategies import pairs

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.measuring.measures import Alignment, parse
from momentseek.measuring.measures.saliency_precision import _average_precision


@given(pairs(graded=False))
def test_map_lies_between_0_and_1_and_falls_with_the_threshold(pair):
    truth, run = pair
    view = Alignment(run, truth)
    loose, tight, mean = (parse(m)(view) for m in ("mAP[IoU>=0.5]", "mAP[IoU>=0.95]", "mAP"))
    assert ((loose >= 0) & (loose <= 1 + 1e-12)).all()
    assert (tight <= loose + 1e-12).all()
    assert ((tight <= mean + 1e-12) & (mean <= loose + 1e-12)).all()


def test_map_sorts_by_score_within_the_first_ten_of_the_list():
    truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    miss = [("q", "v", 50, 60, 0.5)]
    assert parse("mAP[IoU>=0.5]")(Alignment(Run.from_rows([*miss, ("q", "v", 0, 10, 0.9)]), truth))[0] == 1
    deep = Run.from_rows([*miss * 10, ("q", "v", 0, 10, 0.9)])
    assert parse("mAP[IoU>=0.5]")(Alignment(deep, truth))[0] == 0


def test_map_counts_a_moment_once():
    truth = Judgements.from_rows([("q", "v", 0, 10, 1), ("q", "v", 40, 50, 1)])
    run = Run.from_rows([("q", "v", 0, 10, 0.9), ("q", "v", 0, 9, 0.8), ("q", "v", 40, 50, 0.7)])
    assert parse("mAP[IoU>=0.5]")(Alignment(run, truth))[0] == pytest.approx((1 + 2 / 3) / 2)


def saliency_view(true: list[list[int]], predicted: list[float]) -> Alignment:
    truth = Judgements.from_groups(
        ["q"], [1], ["v"], [0], [2], saliency=Saliency(np.array([0, len(true)]), np.array(true, dtype=float))
    )
    scores = Saliency(np.array([0, len(predicted)]), np.array(predicted)[:, None])
    return Alignment(Run.from_groups(["q"], [1], ["v"], [0], [2], saliency=scores), truth)


def test_hit_takes_the_highest_clip_and_any_annotator():
    true = [[0, 0, 0], [0, 2, 4], [1, 1, 1]]
    view = saliency_view(true, [0.1, 0.9, 0.3])
    assert [parse(f"HIT@1[level={level}]")(view)[0] for level in ("fair", "good", "verygood")] == [1, 1, 1]
    assert parse("HIT@1[level=fair]")(saliency_view(true, [0.1, 0.2, 0.3]))[0] == 0
    assert parse("HIT@1[level=fair]")(saliency_view(true, [0.1, 0.2, 0.3, 0.9]))[0] == 0, "beyond the last clip"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=12))
def test_saliency_ap_agrees_with_its_definition(clips):
    """Thresholds from the lowest up, precision made monotone, one term per step of recall."""
    relevant = [r for r, _ in clips]
    order = sorted(range(len(clips)), key=lambda i: -clips[i][1])
    steps, found = [], 0
    for position, i in enumerate(order, 1):
        found += relevant[i]
        last = position == len(order) or clips[order[position]][1] != clips[i][1]
        if last:
            steps.append((found, found / position))
    terms, envelope = [], 0.0
    for (found, precision), previous in zip(reversed(steps), [*reversed([f for f, _ in steps[:-1]]), 0], strict=True):
        envelope = max(envelope, precision)
        if found > previous:
            terms.append(envelope)
    expected = sum(terms) / len(terms) if terms else 0.0
    true = [[4 * r] * 3 for r in relevant]
    got = parse("SaliencyAP[level=verygood]")(saliency_view(true, [float(s) for _, s in clips]))[0]
    assert got == pytest.approx(expected)


def test_short_saliency_lists_are_filled_with_zeros_and_long_ones_cut():
    true = [[4] * 3, [0] * 3, [0] * 3]
    assert parse("SaliencyAP")(saliency_view(true, [-1.0]))[0] == pytest.approx(1 / 3)
    assert parse("SaliencyAP")(saliency_view(true, [0.5, 0.1, 0.2, 9.0]))[0] == 1


def test_no_highlight_gives_0_and_all_give_1():
    nothing = np.zeros((1, 3), dtype=bool)
    everything = np.ones((1, 3), dtype=bool)
    assert _average_precision(nothing, everything).tolist() == [0]
    assert _average_precision(everything, everything).tolist() == [1]


def test_saliency_measures_say_what_is_lacking():
    truth = Judgements.from_rows([("q", "v", 0, 2, 1)])
    with pytest.raises(MomentseekError, match="has no saliency scores"):
        parse("HIT@1")(Alignment(Run.from_rows([("q", "v", 0, 2, 1)]), truth))
