import json

import numpy as np
import pytest
from hypothesis import assume, given
from tests.measuring.measures.reference import lists, ndcg
from tests.measuring.measures.strategies import pairs, truths

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import read_run, read_truth
from momentseek.measuring.measures import PROTOCOLS, Alignment, parse, parse_all


def test_worked_example_of_the_paper(root):
    """TVR-Ranking figure 2: gains 2, 4, 2 against an ideal of 4, 2, 2."""
    truth = read_truth(root / "examples/figure-2/truth.json")
    run = read_run(root / "examples/figure-2/predictions.json")
    measure = parse("NDCG@3[IoU>=0.3]")
    gained = 2 + 4 / 1.584962500721156 + 2 / 2
    ideal = 4 + 2 / 1.584962500721156 + 2 / 2
    assert measure(Alignment(run, truth))[0] == pytest.approx(gained / ideal, abs=1e-15)


@pytest.mark.parametrize("protocol", ["tvr-ranking", "spr"])
def test_official_scores_in_all_nine_cells(golden, protocol):
    truth = read_truth(golden / "tvr_ranking_gt.json.gz")
    run = read_run(golden / "tvr_ranking_predictions.json.gz")
    official = json.loads((golden / "tvr_ranking_official_scores.json").read_text())[protocol]
    rules = PROTOCOLS[protocol]
    view = Alignment(run, truth)
    measures = parse_all(rules.measures, rules.options)
    assert len(measures) == 9
    for measure in measures:
        expected = official[str(measure.k)][str(measure.iou)]
        assert measure.summarise(measure(view)) == pytest.approx(expected, abs=1e-12), measure.name


@given(pairs())
def test_agrees_with_the_definition(pair):
    truth, run = pair
    for threshold in (0.3, 0.5, 1.0):
        for options, reference in (
            ("", {}),
            (",gain=exp2", {"gain": lambda r: 2**r - 1}),
            (",zeros=ignore", {"absorb": False}),
        ):
            for sign in (">=", ">"):
                measure = parse(f"NDCG@5[IoU{sign}{threshold}{options}]")
                expected = [ndcg(j, p, 5, threshold, strict=sign == ">", **reference) for j, p in lists(truth, run)]
                assert measure(Alignment(run, truth)).tolist() == pytest.approx(expected, abs=1e-12)


@given(pairs())
def test_lies_between_0_and_1(pair):
    truth, run = pair
    values = parse("NDCG@10[IoU>=0.5]")(Alignment(run, truth))
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()


@given(truths())
def test_is_1_for_the_judged_moments_in_the_order_of_their_relevance(truth):
    places = list(zip(truth.row_query.tolist(), truth.video.tolist(), truth.start, truth.end, strict=True))
    assume(len(set(places)) == len(places))  # a moment judged twice may be matched by either grade
    order = np.lexsort((-truth.relevance.astype(int), truth.row_query))
    ideal = Run.from_groups(
        truth.query_ids,
        truth.counts.tolist(),
        [truth.videos[v] for v in truth.video[order]],
        truth.start[order],
        truth.end[order],
    )
    answerable = np.bincount(truth.row_query, weights=truth.relevance, minlength=len(truth)) > 0
    values = parse("NDCG@10[IoU>=1]")(Alignment(ideal, truth))
    assert values == pytest.approx(answerable.astype(float), abs=1e-12)


def test_a_perfect_ranking_over_several_videos_scores_1():
    truth = Judgements.from_rows([("q", "v", 0, 5, 1), ("q", "w", 0, 5, 4), ("q", "x", 0, 5, 2)])
    run = Run.from_rows([("q", "w", 0, 5, 3), ("q", "x", 0, 5, 2), ("q", "v", 0, 5, 1)])
    assert parse("NDCG@3[IoU>=0.9]")(Alignment(run, truth))[0] == 1


def test_depth_does_not_change_what_lies_above_it():
    truth = Judgements.from_rows([("q", "v", 0, 5, 1), ("q", "v", 3, 9, 4)])
    run = Run.from_rows([("q", "v", 0, 6, 3), ("q", "v", 3, 8, 2), ("q", "v", 0, 5, 1)])
    measure = parse("NDCG@2[IoU>=0.3]")
    assert measure(Alignment(run, truth))[0] == measure(Alignment(run, truth, depth=2))[0]


def test_a_moment_of_relevance_0_absorbs_a_prediction_or_not():
    truth = Judgements.from_rows([("q", "v", 0, 10, 0), ("q", "v", 0, 8, 4)])
    run = Run.from_rows([("q", "v", 0, 10, 1)])
    view = Alignment(run, truth)
    assert parse("NDCG@1[IoU>=0.5]")(view)[0] == 0
    assert parse("NDCG@1[IoU>=0.5,zeros=ignore]")(view)[0] == 1


def test_queries_without_a_relevant_moment():
    truth = Judgements.from_rows([("a", "v", 0, 10, 0), ("b", "v", 0, 10, 2)])
    run = Run.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 10, 1)])
    view = Alignment(run, truth)
    zero, skip = parse("NDCG@1[IoU>=0.5]"), parse("NDCG@1[IoU>=0.5,empty=skip]")
    assert zero.summarise(zero(view)) == 0.5
    assert skip.summarise(skip(view)) == 1.0
    with pytest.raises(MomentseekError, match="query a has no relevant moment"):
        parse("NDCG@1[IoU>=0.5,empty=error]")(view)
