"""The figure of ranked moments next to the judged ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.ranked_lists import choose_queries, ranked_lists_figure

ROWS = [("q", f"v{i}", 0, 10, 4 - i % 5) for i in range(14)]
TRUTH = Judgements.from_rows([*ROWS, ("p", "w", 0, 10, 3)])
RUN = Run.from_rows(
    [("q", "v13", 0, 9, 0.9), ("q", "x", 0, 9, 0.8), ("q", "v0", 30, 40, 0.7), ("p", "w", 0, 10, 1.0)]
)  # fmt: skip


def texts(figure: object, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]  # type: ignore[attr-defined]


def test_matches_are_joined_and_the_rest_is_grey() -> None:
    figure = ranked_lists_figure(RUN, TRUTH)
    good, poor = figure.axes
    assert "NDCG@10[IoU>=0.3]: 1.000" in good.get_title(loc="left")
    assert len(poor.lines) == 1
    # The match is the 14th by its place in the file, and is shown next to the nine most relevant others.
    assert poor.lines[0].get_xydata()[1][1] == 0
    shown = [text for text in texts(figure, 1) if "\n" in text]
    assert len(shown) == 10 + 3
    assert sum("v13" in text for text in shown) == 2
    grey = [t.get_text() for t in poor.texts if t.get_color() == "0.65" and "\n" in t.get_text()]
    assert len(grey) == 9 + 2


def test_a_run_that_finds_nothing_has_nothing_to_draw() -> None:
    with pytest.raises(MomentseekError, match="nothing to draw; check the run"):
        choose_queries(np.zeros(3))


def test_evaluate_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kitchen = Path(__file__).parents[2] / "examples/kitchen"
    asked = ["evaluate", str(kitchen / "careful.jsonl"), "-t", str(kitchen / "truth.jsonl")]
    result = CliRunner().invoke(cli, [*asked, "--plots", str(tmp_path / "f"), "--json"])
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout)
    assert sorted(p.name for p in (tmp_path / "f").iterdir()) == ["ranked-lists.png", "ranked-lists.svg"]
    captions = Path(__file__).parents[2] / "examples/captions"
    asked = ["evaluate", str(captions / "careful.jsonl"), "-t", str(captions / "references.jsonl"), "--protocol", "tvc"]
    with pytest.raises(MomentseekError, match="these are captions; leave it out"):
        raise CliRunner().invoke(cli, [*asked, "--plots", str(tmp_path / "g")]).exception or AssertionError
