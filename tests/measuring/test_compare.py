from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.compare import compare, largest_differences, unique_labels
from momentseek.measuring.comparison import Comparison
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import parse_all
from momentseek.measuring.result import Evaluation
from momentseek.measuring.significance import holm, paired_t_test, randomisation_test, tukey_test

NAN = np.nan


def evaluation(values: ArrayLike, run: str = "run", **changes: object) -> Evaluation:
    table = np.asarray(values, dtype=float)
    names = [f"AxIoU@{i + 1}" for i in range(table.shape[1])]
    given: dict[str, object] = {
        "protocol": "paper",
        "run": run,
        "query_ids": tuple(f"q{i}" for i in range(len(table))),
        "queries": None,
        "measures": tuple(parse_all(names, {})),
        "values": table,
    }
    return Evaluation(**{**given, **changes})  # type: ignore[arg-type]


def several(queries: int = 60, seed: int = 0) -> list[Evaluation]:
    noise = np.random.default_rng(seed).normal(0, 0.1, (3, queries, 2))
    shared = np.random.default_rng(seed + 1).random((queries, 2)) * 0.5
    gains = (0.25, 0.1, 0.095)
    return [evaluation(np.clip(shared + noise[i] + gains[i], 0, 1), name) for i, name in enumerate(["x", "y", "z"])]


def test_means_are_those_of_the_evaluations() -> None:
    runs = several()
    comparison = compare(runs)
    for row, run in zip(comparison.means, runs, strict=True):
        assert row.tolist() == [run.mean(name) for name in run.names]
    assert comparison.queries == 60
    assert comparison.left_out == (0, 0)


@pytest.mark.parametrize("test", ["randomisation", "t", "tukey"])
@pytest.mark.parametrize("correction", ["holm", "none"])
def test_p_values_are_those_of_the_tests_corrected_within_each_measure(test: str, correction: str) -> None:
    runs = several()
    comparison = compare(runs, test=test, correction=correction, seed=5)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for m, name in enumerate(comparison.names):
        apart = np.stack([runs[i].values[:, m] - runs[j].values[:, m] for i, j in pairs], axis=1)
        if test == "tukey":
            matrix = tukey_test(np.stack([r.values for r in runs], axis=1), seed=5)
            expected = np.array([matrix[i, j, m] for i, j in pairs])
        else:
            expected = randomisation_test(apart, seed=5) if test == "randomisation" else paired_t_test(apart)
        found = [pair for pair in comparison.pairs if pair.measure == name]
        np.testing.assert_allclose([p.p_uncorrected for p in found], expected, rtol=1e-9)
        corrected = holm(expected) if correction == "holm" and test != "tukey" else expected
        np.testing.assert_allclose([p.p for p in found], corrected, rtol=1e-9)
        assert [p.significant for p in found] == (corrected <= 0.05).tolist()


def test_letters_name_the_runs_that_are_beaten_significantly() -> None:
    comparison = compare(several())
    assert [comparison.letter(run) for run in comparison.runs] == ["a", "b", "c"]
    for name in comparison.names:
        assert comparison.beaten(name, "x") == "bc"
        assert comparison.beaten(name, "y") == comparison.beaten(name, "z") == ""


def test_a_pair_reads_in_both_directions() -> None:
    comparison = compare(several())
    there, back = comparison.pair("AxIoU@1", "x", "y"), comparison.pair("AxIoU@1", "y", "x")
    assert back.swap() == there
    assert there.low < there.difference < there.high
    assert there.difference == pytest.approx(comparison.means[0, 0] - comparison.means[1, 0])
    assert there.difference == -back.difference
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert there.effect == -back.effect > 0
    assert there.p == back.p
    with pytest.raises(MomentseekError, match="'x' and 'x' were not compared"):
        comparison.pair("AxIoU@1", "x", "x")


def test_swapping_the_runs_changes_only_the_signs() -> None:
    runs = several()
    forth, back = compare(runs), compare(runs[::-1])
    for name in forth.names:
        for first, second in (("x", "y"), ("x", "z"), ("y", "z")):
            one, two = forth.pair(name, first, second), back.pair(name, first, second)
            assert one.p == two.p
            assert (one.wins, one.ties, one.losses) == (two.wins, two.ties, two.losses)
            assert [one.low, one.high] == pytest.approx([two.low, two.high], abs=1e-12)


def test_a_query_that_does_not_count_for_one_run_counts_for_none() -> None:
    first, second = evaluation([[0.5, 0.1], [0.9, 0.2], [NAN, 0.3]]), evaluation([[0.4, 0.1], [NAN, 0.1], [0.7, 0.1]])
    comparison = compare([first, second])
    assert comparison.left_out == (2, 0)
    assert comparison.means[:, 0].tolist() == [0.5, 0.4]
    pair = comparison.pairs[0]
    assert (pair.wins, pair.ties, pair.losses) == (1, 0, 0)
    assert pair.p == 1
    assert np.isnan(pair.effect)
    measure = comparison.as_dict()["measures"][0]
    assert (measure["queries"], measure["left_out"], measure["pairs"][0]["effect"]) == (1, 2, None)


def test_a_measure_that_counts_for_no_query_compares_as_nothing() -> None:
    comparison = compare([evaluation([[NAN], [NAN]]), evaluation([[NAN], [NAN]])])
    assert np.isnan(comparison.means).all()
    assert comparison.pairs[0].p == 1
    assert comparison.as_dict()["measures"][0]["means"] == {"run": None, "run (2)": None}


def test_the_same_run_twice_does_not_differ() -> None:
    run = several()[0]
    pair = compare([run, run]).pairs[0]
    assert (pair.difference, pair.low, pair.high, pair.p, pair.effect) == (0, 0, 0, 1, 0)
    assert (pair.first, pair.second, pair.ties) == ("x", "x (2)", 60)


def test_equal_differences_give_an_infinite_effect_size_in_json() -> None:
    comparison = compare([evaluation(np.full((20, 1), 0.25)), evaluation(np.full((20, 1), 0.75))])
    assert comparison.pairs[0].effect == -np.inf
    written = json.dumps(comparison.as_dict(), allow_nan=False)
    assert json.loads(written)["measures"][0]["pairs"][0]["effect"] == "-Infinity"
    assert comparison.as_dict()["measures"][0]["better_than"] == {"run": [], "run (2)": ["a"]}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([evaluation([[1.0]])], "at least two runs"),
        ([evaluation([[1.0]])] * 27, "27 runs are too many"),
        ([evaluation([[1.0]], "x"), evaluation([[1.0], [0.5]], "y")], "x and y cannot be compared: their queries"),
        ([evaluation([[1.0]]), evaluation([[1.0]], query_ids=("other",))], "their queries differ"),
        ([evaluation([[1.0]]), evaluation([[1.0, 0.5]])], "their measures differ"),
        ([evaluation([[1.0]]), evaluation([[1.0]], protocol="tvr")], "their protocols differ"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(runs: list[Evaluation], message: str) -> None:
    with pytest.raises(MomentseekError, match=message):
        compare(runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"test": "u"}, "no test 'u'"), ({"correction": "x"}, "no correction 'x'"), ({"alpha": 5}, "between 0 and 1")],
)
def test_unknown_choices_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(MomentseekError, match=message):
        compare(several(), **options)  # type: ignore[arg-type]


def test_the_seed_decides() -> None:
    def p(comparison: Comparison) -> list[float]:
        return [pair.p for pair in comparison.pairs]

    assert p(compare(several(), seed=1)) == p(compare(several(), seed=1)) != p(compare(several(), seed=2))


def test_largest_differences() -> None:
    first = evaluation([[0.5], [0.9], [0.2], [NAN], [0.1 + 0.2]], queries=("one", "two", "three", "four", "five"))
    second = evaluation([[0.4], [0.1], [1.0], [0.5], [0.3]])
    rows = largest_differences(first, second, "AxIoU@1")
    assert [(r.query_id, r.query, r.first, r.second) for r in rows] == [
        ("q1", "two", 0.9, 0.1),
        ("q2", "three", 0.2, 1.0),
        ("q0", "one", 0.5, 0.4),
    ]
    assert [r.difference for r in rows] == pytest.approx([0.8, -0.8, 0.1])
    assert [r.query_id for r in largest_differences(first, second, "AxIoU@1", 1)] == ["q1"]
    with pytest.raises(MomentseekError, match="'mIoU' was not computed; there are AxIoU@1"):
        largest_differences(first, second, "mIoU")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["a", "b"], ("a", "b")),
        (["a", "a", "a"], ("a", "a (2)", "a (3)")),
        (["a", "a (2)", "a"], ("a", "a (2)", "a (3)")),
        (["a", "a", "a (2)"], ("a", "a (3)", "a (2)")),
    ],
)
def test_labels_are_unique(names: list[str], labels: tuple[str, ...]) -> None:
    assert unique_labels(names) == labels


def test_evaluated_runs_compare_end_to_end() -> None:
    generator = np.random.default_rng(4)
    truth = Judgements.from_rows([(q, f"v{q % 7}", 10.0, 20.0, 1 + q % 4) for q in range(120)])

    def system(noise: float) -> Run:
        rows = [(q, f"v{q % 7}", 10.0 + abs(generator.normal(0, noise)), 20.0, 1.0) for q in range(120)]
        return Run.from_rows([(q, v, s, max(e, s + 1), c) for q, v, s, e, c in rows])

    runs = [
        evaluate(system(noise), truth, ["mIoU", "R@1[IoU>=0.7]"], label=label)
        for noise, label in [(0.5, "fine"), (4.0, "rough")]
    ]
    for test in ("randomisation", "t", "tukey"):
        comparison = compare(runs, test=test)
        assert [comparison.beaten(name, "fine") for name in comparison.names] == ["b", "b"]
        assert comparison.pair("mIoU", "fine", "rough").low > 0


def test_of_an_error_rate_the_smaller_figure_wins() -> None:
    truth = Judgements.from_rows([(f"q{i}", f"v{i}", 0, 10, 0) for i in range(8)])
    careful, eager = (
        evaluate(
            Run.from_rows([(f"q{i}", f"v{i}", 0, 9, score) for i in range(8)]),
            truth,
            "FalseAlarm[level=0.5]",
            label=name,
        )
        for name, score in (("careful", 0.1), ("eager", 0.9))
    )
    found = compare([careful, eager])
    (pair,) = found.pairs
    assert (pair.difference, pair.wins, pair.ties, pair.losses) == (-1.0, 8, 0, 0)
    assert found.beaten("FalseAlarm[level=0.5]", "careful") == "b"
