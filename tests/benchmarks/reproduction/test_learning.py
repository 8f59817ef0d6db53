"""Each system of Table 2 learns on biased films: more than bias-based and than any constant guess, on iid."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.benchmarks.reproduction.session import reproduce_table
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.models.features.data import Data

MEASURE = "dR@1[IoU>=0.5]"
STEPS = 0.125
GUESSES = [(a * STEPS, b * STEPS) for a in range(8) for b in range(a + 1, 9)]
"""Every stretch between two eighths of the film."""
SYSTEMS = ("ctrl", "acrn", "ablr", "scdm", "drn", "tcn_dcm")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learning")


def best_guess(films: Path) -> float:
    """What the best of the constant guesses scores on iid, in percent."""
    with Data.open(films) as data:
        split = data.split("test_iid")
        asked = [(query, split.truth.moments(query)[0].video) for query in split.truth.query_ids]
        runs = [
            Run.from_rows([(q, v, a * split.durations[v], b * split.durations[v], 1.0) for q, v in asked])
            for a, b in GUESSES
        ]
        return max(100 * evaluate(run, split.truth, [MEASURE]).means[MEASURE] for run in runs)


@pytest.mark.figures
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_of_table_2_learns_more_than_habits(system: str, out: Path) -> None:
    found = reproduce_table("debiased-2", rows=["bias-based", system], seeds=1, out=out)
    assert found is not None
    blind, learnt = (row.cells[0].ours.mean for row in found.rows)
    guess = best_guess(next((out / "data").iterdir()))
    assert learnt > max(blind, guess) + 5, (learnt, blind, guess)
