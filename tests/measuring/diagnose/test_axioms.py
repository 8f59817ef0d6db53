"""The axioms: what each measure is proved to satisfy or break (AxIoU supplement A), found by the search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.diagnose.axiom_cases import Case, ListedMoment, Trials, cost, shrink
from momentseek.measuring.diagnose.axioms import AxiomReport, axiom_text, breaks, check_axioms
from momentseek.measuring.measures import parse, parse_all

RECALLS = ["R@{1,5,10}[IoU>={0.3,0.5,0.7}]"]
EXPECTED = {
    "AP@10[IoU>0.5]": {"INV-k", "MON-k"},
    "DCG@10": {"INV-k"},
    "DCG@10[gain=exp2,discount=rank]": {"INV-k"},
    "AxIoU@1": set(),
    "AxIoU@5": set(),
    "AxIoU@10": set(),
    "mIoU": set(),
    "NDCG@10[IoU>=0.5]": {"MON-k"},
    "mAP": {"MON-k"},
    "dR@1[IoU>=0.5]": {"MON-k"},
    **{m.name: {"MON-k"} for m in parse_all(RECALLS)},
}


def real_like(queries: int = 60, depth: int = 10, seed: int = 1) -> tuple[Run, Judgements]:
    """Lists of a middling system: moments scattered around the true one, some in other videos."""
    rng = np.random.default_rng(seed)
    rows, truth = [], []
    for q in range(queries):
        start = rng.uniform(0, 60)
        end = start + rng.uniform(5, 30)
        truth.append((f"q{q}", f"v{q}", start, end))
        for k in range(depth):
            s = max(0.0, start + rng.normal(0, 8))
            e = max(s + 1, end + rng.normal(0, 8))
            video = f"v{q}" if rng.random() < 0.8 else "elsewhere"
            rows.append((f"q{q}", video, s, e, -float(k)))
    judged = Judgements.from_groups(
        [t[0] for t in truth],
        [1] * queries,
        [t[1] for t in truth],
        [t[2] for t in truth],
        [t[3] for t in truth],
        durations={t[1]: 120.0 for t in truth},
    )
    return Run.from_rows(rows), judged


@pytest.fixture(scope="module")
def report() -> AxiomReport:
    return check_axioms([real_like()], parse_all([*RECALLS, *EXPECTED]))


def test_what_is_broken_is_what_the_paper_proves(report: AxiomReport) -> None:
    found = {m.measure: {v.axiom for v in m.verdicts if v.broken} for m in report.measures}
    assert found == EXPECTED
    assert (report.from_runs, report.at_random) == (3000, 3000)


def test_every_axiom_was_really_tried(report: AxiomReport) -> None:
    for measure in report.measures:
        for verdict in measure.verdicts:
            assert verdict.tried > 300, (measure.measure, verdict)


@pytest.mark.parametrize("name", [n for n, broken in EXPECTED.items() if broken])
def test_data_alone_suffice_for_a_counter_example(report: AxiomReport, name: str) -> None:
    verdicts = next(m for m in report.measures if m.measure == name).verdicts
    for verdict in verdicts:
        if verdict.example:
            assert verdict.example.case.origin.startswith("query q")


def test_shrunk_examples_are_violations_and_small(report: AxiomReport) -> None:
    for measure in report.measures:
        for verdict in measure.verdicts:
            if verdict.example is None:
                assert not verdict.broken
                continue
            case = verdict.example.case
            assert breaks(verdict.axiom, parse(measure.measure), [case]).all()
            assert len(case.ranked) == (2 if verdict.axiom == "INV-k" else 1)
            assert len(case.truth) == 1
            assert all(t == int(t) for s in (*case.truth, *case.ranked, case.changed) for t in (s.start, s.end))
            example = verdict.example
            moved = example.after - example.before
            assert abs(moved) > 1e-9 if verdict.axiom == "INV-k" else moved <= 1e-9


def test_a_measure_of_one_rank_holds_invariance_trivially(report: AxiomReport) -> None:
    for measure in report.measures:
        assert measure.verdicts[0].note.startswith("holds trivially") == (measure.cutoff == 1)


def test_several_true_moments_make_ndcg_break_invariance() -> None:
    truth = Judgements.from_rows([("q", "v", 0, 10, 1), ("q", "v", 20, 30, 1)])
    run = Run.from_rows([("q", "v", 0, 10, 0.9), ("q", "v", 18, 40, 0.8)])
    found = check_axioms([(run, truth)], parse_all(["NDCG@10[IoU>=0.5]", "AxIoU@10"]), trials=400)
    assert [bool(m.verdicts[0].broken) for m in found.measures] == [True, False]
    assert "INV-k assumes that one good answer is enough" in axiom_text(found)


def test_text_shows_lists_values_and_caution(report: AxiomReport) -> None:
    text = axiom_text(report)
    assert "← changed" in text
    assert "finding none proves nothing" in text
    assert "no counter-example in" in text


def test_other_kinds_of_measure_are_left_out() -> None:
    found = check_axioms([real_like(5)], parse_all(["HIT@1", "AxIoU@1"]), trials=50)
    assert [m.measure for m in found.measures] == ["AxIoU@1"]
    assert found.skipped[0].startswith("HIT@1")


def test_durations_unknown_leave_dr_to_random_lists() -> None:
    run, truth = Run.from_rows([("q", "v", 0, 5, 1)]), Judgements.from_rows([("q", "v", 0, 10, 1)])
    assert "dR@1[IoU>=0.5]" not in [m.measure for m in check_axioms([(run, truth)], trials=50).measures]
    asked = check_axioms([(run, truth)], parse_all(["dR@1[IoU>=0.5]"]), trials=300).measures[0].verdicts[1]
    assert asked.broken
    assert asked.example is not None
    assert asked.example.case.origin == "random lists"


def test_the_same_seed_gives_the_same_report() -> None:
    pair = real_like(10)
    one, two = (check_axioms([pair], parse_all(["R@5[IoU>=0.5]"]), trials=200, seed=7) for _ in range(2))
    assert one == two


spans = st.tuples(st.floats(0, 50), st.floats(1, 40)).map(lambda t: ListedMoment("v", t[0], t[0] + t[1]))
cases = st.builds(
    lambda truth, ranked, changed, place: Case(truth, ranked, 1 + place % len(ranked), changed),
    st.lists(spans, min_size=1, max_size=3).map(tuple),
    st.lists(spans, min_size=1, max_size=10).map(tuple),
    spans,
    st.integers(0, 9),
)


@given(st.lists(cases, min_size=1, max_size=20), st.integers(1, 10))
def test_axiou_satisfies_both_axioms(some: list[Case], k: int) -> None:
    measure = parse(f"AxIoU@{k}")
    assert not breaks("INV-k", measure, some).any()
    assert not breaks("MON-k", measure, some).any()


@given(st.lists(cases, min_size=1, max_size=20), st.sampled_from([0.3, 0.5, 0.7]))
def test_proved_halves(some: list[Case], threshold: float) -> None:
    """R satisfies INV-k (property 2), DCG satisfies MON-k (property 6) and breaks INV-k wherever it is asked."""
    assert not breaks("INV-k", parse(f"R@10[IoU>={threshold}]"), some).any()
    assert not breaks("MON-k", parse("DCG@10"), some).any()
    assert (breaks("INV-k", parse("DCG@10"), some) == Trials(some).invariant).all()


@given(cases)
def test_shrinking_keeps_what_it_is_told_to_keep(case: Case) -> None:
    measure = parse("R@10[IoU>=0.5]")
    if not breaks("MON-k", measure, [case]).all():
        return
    small = shrink(case, lambda some: breaks("MON-k", measure, some))
    assert breaks("MON-k", measure, [small]).all()
    assert cost(small) <= cost(case)
    assert len(small.ranked) == 1
