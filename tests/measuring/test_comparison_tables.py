from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from textwrap import dedent

import numpy as np
import pytest

from momentseek.measuring.comparison import (
    Comparison,
    QueryDifference,
    RunPair,
    notes,
    render,
    render_differences,
    summary,
)

text, markdown, latex = (partial(render, style=style) for style in ("text", "markdown", "latex"))


def snapshot(block: str) -> str:
    return dedent(block).strip("\n")


def comparison(measures: int = 2, percent: bool = False, **changes: object) -> Comparison:
    names = tuple(f"NDCG@{k}[IoU>=0.5]" for k in range(1, measures + 1))
    runs = ("ours_v2", "theirs", "chance")
    means = np.array([[0.31254, 0.41, 0.05]] * measures).T
    pairs = []
    for name in names:
        for first, second in itertools.combinations(range(3), 2):
            apart = float(means[first, 0] - means[second, 0])
            p = 0.03 if second == 2 else 0.2
            pairs.append(
                RunPair(
                    name, runs[first], runs[second], apart, apart - 0.1, apart + 0.1, p, p, 0.5, 1200, 3, 40, p <= 0.05
                )
            )
    given: dict[str, object] = {
        "protocol": "paper",
        "test": "randomisation",
        "correction": "holm",
        "alpha": 0.05,
        "seed": 0,
        "percent": percent,
        "runs": runs,
        "names": names,
        "queries": 1243,
        "left_out": (0,) * measures,
        "means": means,
        "pairs": tuple(pairs),
    }
    return Comparison(**{**given, **changes})  # type: ignore[arg-type]


def test_a_comparison_in_a_terminal() -> None:
    assert text(comparison(1)) == snapshot(
        """
        protocol paper, 1,243 queries, paired randomisation test, Holm-corrected, alpha 0.05

        run        NDCG@1[IoU>=0.5]
        a ours_v2           0.3125ᶜ
        b theirs            0.4100ᶜ
        c chance            0.0500

        A raised letter: significantly better than the run of that letter.

        measure           runs   difference       95 % interval       p  effect   wins  ties  losses
        NDCG@1[IoU>=0.5]  a − b     -0.0975  [-0.1975, +0.0025]  0.2000   +0.50  1,200     3      40
        NDCG@1[IoU>=0.5]  a − c     +0.2625  [+0.1625, +0.3625]  0.0300   +0.50  1,200     3      40
        NDCG@1[IoU>=0.5]  b − c     +0.3600  [+0.2600, +0.4600]  0.0300   +0.50  1,200     3      40
        """
    )


def test_a_comparison_in_markdown() -> None:
    means, pairs = markdown(comparison()).rsplit("\n\n", 1)
    assert pairs.startswith("| measure | runs | difference | 95 % interval | p | effect | wins | ties | losses |")
    assert pairs.count("\n") == 1 + len(comparison().pairs)
    assert means == snapshot(
        r"""
        | run | NDCG@1[IoU>=0.5] | NDCG@2[IoU>=0.5] |
        |:---|---:|---:|
        | a ours\_v2 | 0.3125<sup>c</sup> | 0.3125<sup>c</sup> |
        | b theirs | **0.4100**<sup>c</sup> | **0.4100**<sup>c</sup> |
        | c chance | 0.0500 | 0.0500 |

        protocol paper, 1,243 queries, paired randomisation test, Holm-corrected, alpha 0.05

        A raised letter: significantly better than the run of that letter.
        """
    )


def test_a_comparison_in_latex() -> None:
    means, pairs = latex(comparison(percent=True)).rsplit("\n\n", 1)
    assert r"NDCG@1[IoU$\geq$0.5] & a $-$ b &" in pairs
    assert pairs.count("$-$") == len(comparison().pairs)
    assert means == snapshot(
        r"""
        % protocol paper, 1,243 queries, paired randomisation test, Holm-corrected, alpha 0.05
        % A raised letter: significantly better than the run of that letter.
        \begin{tabular}{lrr}
        \toprule
        run & NDCG@1[IoU$\geq$0.5] & NDCG@2[IoU$\geq$0.5] \\
        \midrule
        a ours\_v2 & 31.25$^{c}$ & 31.25$^{c}$ \\
        b theirs & \textbf{41.00}$^{c}$ & \textbf{41.00}$^{c}$ \\
        c chance & 5.00 & 5.00 \\
        \bottomrule
        \end{tabular}
        """
    )


def test_many_measures_become_rows() -> None:
    narrow, wide = text(comparison(6)), text(comparison(7))
    assert narrow.split("\n")[2].startswith("run  ")
    assert wide.split("\n")[2].split() == ["measure", "a", "ours_v2", "b", "theirs", "c", "chance"]
    assert wide.split("\n")[3].split() == ["NDCG@1[IoU>=0.5]", "0.3125ᶜ", "0.4100ᶜ", "0.0500"]


def test_long_names_of_many_measures_move_into_a_legend() -> None:
    lines = text(renamed(comparison(7), "x" * 90)).split("\n")
    assert lines[2:5] == ["a " + "x" * 90, "b theirs", "c chance"]
    assert lines[6].split() == ["measure", "a", "b", "c"]
    assert lines[7].split() == ["NDCG@1[IoU>=0.5]", "0.3125ᶜ", "0.4100ᶜ", "0.0500"]


def renamed(comparison: Comparison, first: str) -> Comparison:
    pairs = tuple(replace(p, first=first) if p.first == comparison.runs[0] else p for p in comparison.pairs)
    return replace(comparison, runs=(first, *comparison.runs[1:]), pairs=pairs)


def test_all_of_several_best_are_bold() -> None:
    same = comparison(1, means=np.array([[0.41], [0.41000001], [0.05]]))
    assert markdown(same).count("**0.4100**") == 2
    assert latex(same).count(r"\textbf{0.4100}") == 2


def test_notes_say_what_is_left_out_and_when_nothing_is_significant() -> None:
    assert notes(comparison(left_out=(3, 3)))[1].startswith("Left out for all runs: 3 queries")
    assert "1,200 (NDCG@2[IoU>=0.5])" in notes(comparison(left_out=(0, 1200)))[1]
    weak = tuple(replace(pair, significant=False) for pair in comparison().pairs)
    assert notes(comparison(pairs=weak)) == ["No difference is significant at alpha 0.05."]


def test_odd_values_print_sensibly() -> None:
    base = comparison(1)
    odd = tuple(
        replace(pair, effect=effect, difference=-0.00001, low=np.nan, high=np.nan, p=1e-9)
        for pair, effect in zip(base.pairs, (np.inf, -np.inf, np.nan), strict=True)
    )
    lines = text(comparison(1, pairs=odd, means=np.full((3, 1), np.nan))).split("\n")
    assert [line.split()[-4] for line in lines[-3:]] == ["+∞", "-∞", "–"]
    assert all(line.split()[4:8] == ["+0.0000", "[–,", "–]", "<0.0001"] for line in lines[-3:])
    assert "**" not in markdown(comparison(1, means=np.full((3, 1), np.nan)))
    assert lines[3].split() == ["a", "ours_v2", "–"]


@pytest.mark.parametrize("test", ["randomisation", "t", "tukey"])
@pytest.mark.parametrize("correction", ["holm", "none", "tukey"])
def test_every_test_and_correction_has_words(test: str, correction: str) -> None:
    assert summary(comparison(test=test, correction=correction)).endswith("alpha 0.05")


def test_the_queries_that_differ_most() -> None:
    rows = [QueryDifference("7", "A  man\nwaves_", 0.9, 0.1, 0.8), QueryDifference("12", None, 0.0, 0.5, -0.5)]
    assert render_differences(rows, "mIoU", ["x", "y"], percent=False) == snapshot(
        """
        mIoU: where x (a) and y (b) differ most

        query       a       b  difference  text
        7      0.9000  0.1000     +0.8000  A man waves_
        12     0.0000  0.5000     -0.5000
        """
    )
    marked = render_differences(rows, "mIoU", ["x", "y"], percent=True, style="markdown")
    assert marked.endswith("| 7 | 90.00 | 10.00 | +80.00 | A man waves\\_ |\n| 12 | 0.00 | 50.00 | -50.00 |  |")
    assert r"waves\_ \\" in render_differences(rows, "mIoU", ["x", "y"], False, "latex")
    none = render_differences([], "mIoU", ["x", "y"], percent=False)
    assert none == "mIoU: x and y do not differ on any query."
