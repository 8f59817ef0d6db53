"""A constructed null: two systems that are equally good, on videos with five queries each and over seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.compare import compare
from momentseek.measuring.comparison import render
from momentseek.measuring.measures import parse_all
from momentseek.measuring.replicates import (
    cluster_sums,
    replicated_test,
    shared_letters,
    smallest_findable,
    video_clusters,
)
from momentseek.measuring.report import as_text, intervals
from momentseek.measuring.resampling import bootstrap_interval
from momentseek.measuring.result import Evaluation
from momentseek.measuring.significance import randomisation_test

VIDEOS, QUERIES = 60, 5
CLUSTERS = np.repeat(np.arange(VIDEOS), QUERIES)


def null(rng: np.random.Generator, columns: int) -> np.ndarray:
    """Differences of two equal systems: what a video adds to all of its queries, and what each query adds."""
    return np.repeat(rng.normal(0, 1, (VIDEOS, columns)), QUERIES, axis=0) + rng.normal(0, 1, (len(CLUSTERS), columns))


def test_type_i_error_is_five_percent_by_video_but_not_by_query() -> None:
    apart = null(np.random.default_rng(0), 4000)
    by_video = (randomisation_test(cluster_sums(apart, CLUSTERS), resamples=2000) <= 0.05).mean()
    by_query = (randomisation_test(apart[:, :1000], resamples=1000) <= 0.05).mean()
    assert 0.04 <= by_video <= 0.06
    assert by_query > 0.2


def test_intervals_by_video_cover_the_truth() -> None:
    apart = null(np.random.default_rng(1), 3000)
    low, high = bootstrap_interval(apart, clusters=CLUSTERS, resamples=1000)
    assert 0.04 <= ((low > 0) | (high < 0)).mean() <= 0.065


def two_systems(rng: np.random.Generator, seed_share: float, noise: float, gain: float = 0.0) -> list[np.ndarray]:
    """Values of two systems, (3 seeds, queries): the first is better by ``gain``."""
    apart = null(rng, 1)[:, 0] / 2
    return [
        (sign + 1) * gain / 2 + sign * apart + rng.normal(0, seed_share, (3, 1)) + rng.normal(0, noise, (3, len(apart)))
        for sign in (1, -1)
    ]


@pytest.mark.parametrize(("seed_share", "noise"), [(0.0, 0.3), (0.1, 0.3), (0.4, 0.3), (0.1, 1.0), (0.4, 1.0)])
def test_type_i_error_with_seeds_is_five_percent_however_much_seeds_differ(seed_share: float, noise: float) -> None:
    rng = np.random.default_rng(2)
    found = [replicated_test(*two_systems(rng, seed_share, noise), CLUSTERS).p for _ in range(2000)]
    assert 0.035 <= np.mean(np.array(found) <= 0.05) <= 0.06


@pytest.mark.parametrize("seed_share", [0.0, 0.1, 0.3])
def test_smallest_findable_difference_has_80_percent_power_with_seeds(seed_share: float) -> None:
    rng = np.random.default_rng(5)
    tests = [replicated_test(*two_systems(rng, seed_share, 0.3), CLUSTERS) for _ in range(300)]
    error = math.sqrt(np.mean([test.error**2 for test in tests]))
    gain = smallest_findable(error, float(np.median([test.freedom for test in tests])))
    found = [replicated_test(*two_systems(rng, seed_share, 0.3, gain), CLUSTERS).p for _ in range(1000)]
    assert 0.74 <= np.mean(np.array(found) <= 0.05) <= 0.86


def evaluation(values: np.ndarray, run: str) -> Evaluation:
    rows = [(f"q{i}", f"v{c}", 0, 1, 1) for i, c in enumerate(CLUSTERS)]
    return Evaluation(
        protocol="paper", run=run, query_ids=tuple(f"q{i}" for i in range(len(values))), queries=None,
        measures=tuple(parse_all(["AxIoU@1"], {})), values=values[:, None], judgements=Judgements.from_rows(rows),
    )  # fmt: skip


def test_a_comparison_takes_seeds_together_and_says_what_it_did() -> None:
    rng = np.random.default_rng(3)
    hard = np.repeat(rng.random(VIDEOS), QUERIES)
    ours, theirs = (
        [evaluation(np.clip(0.5 * hard + gain + rng.normal(0, 0.02, len(hard)), 0, 1), name) for _ in range(3)]
        for name, gain in (("ours", 0.25), ("theirs", 0.1))
    )
    found = compare([ours, theirs])
    assert found.seeds == (3, 3)
    assert found.videos == VIDEOS
    (pair,) = found.pairs
    assert pair.significant
    assert pair.low < 0.15 < pair.high
    differing = [evaluation(e.values[:, 0] + shift, "ours") for e, shift in zip(ours, (0, 0.12, 0.3), strict=True)]
    (wide,) = compare([differing, theirs]).pairs
    assert wide.high - wide.difference > 3 * np.std([0, 0.12, 0.3], ddof=1) / math.sqrt(3)  # Student's, not normal
    assert (wide.low <= 0) == (wide.p_uncorrected > 0.05)
    assert found.means[0, 0] == pytest.approx(np.mean([e.means["AxIoU@1"] for e in ours]))
    text = render(found, power=True)
    assert "300 queries in 60 videos, which are exchanged and drawn as a whole, 3 seeds per system" in text
    assert "t-test over videos and seeds" in text
    assert "smallest findable" in text
    assert "smallest findable" not in render(found)
    assert ", 3, 1 seeds in this order, " in render(compare([ours, theirs[:1]]))


def test_intervals_of_one_run_say_what_was_drawn() -> None:
    result = evaluation(np.linspace(0, 1, len(CLUSTERS)), "ours")
    low, high = intervals(result)[""]["AxIoU@1"]
    alone = bootstrap_interval(result.values)
    assert high - low > 2 * (alone[1] - alone[0])[0]
    assert "interval over the queries, those of each of 60 videos drawn together." in as_text(
        result, ci=intervals(result)
    )


def test_smallest_findable_difference_has_80_percent_power() -> None:
    rng = np.random.default_rng(4)
    apart = null(rng, 2000)
    error = math.sqrt(1 / VIDEOS + 1 / len(CLUSTERS))
    p = randomisation_test(cluster_sums(apart + smallest_findable(error), CLUSTERS), resamples=1000)
    assert 0.75 <= (p <= 0.05).mean() <= 0.85


def test_queries_of_one_video_each_are_no_clusters() -> None:
    assert video_clusters(Judgements.from_rows([("a", "x", 0, 1, 1), ("b", "y", 0, 1, 1)])) is None
    assert video_clusters(None) is None


def test_two_systems_share_a_letter_exactly_if_they_are_not_apart() -> None:
    rng = np.random.default_rng(5)
    for count in (1, 2, 5, 9):
        means = rng.random(count)
        apart = np.abs(means[:, None] - means) + rng.random((count, count)) * 0.2 > 0.3
        apart = apart & apart.T & ~np.eye(count, dtype=bool)
        letters = shared_letters(means.tolist(), apart)
        for i in range(count):
            for j in range(count):
                assert bool(set(letters[i]) & set(letters[j])) == (not apart[i, j]), (letters, i, j)
