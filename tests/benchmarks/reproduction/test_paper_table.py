from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from momentseek.benchmarks.reproduction.paper_table import parse_table, read_table, table_names
from momentseek.benchmarks.reproduction.rows import Budget, training_config
from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures import parse_all

PAPERS = Path(__file__).parents[3] / "shared" / "papers"
SOURCES = {
    "debiased-2": "debiased-grounding-mdd",
    "debiased-3": "debiased-grounding-mdd",
    "debiased-4": "debiased-grounding-mdd",
    "mvmr-2": "mvmr-crocs",
    "mvmr-3": "mvmr-crocs",
    "tvr-ranking-5": "tvr-ranking",
    "tvr-ranking-6": "tvr-ranking",
    "tvr-3": "tvr-xml",
    "tvr-5": "tvr-xml",
}


@pytest.mark.parametrize("name", table_names())
def test_every_row_of_every_table_has_settings_that_its_model_knows(name: str) -> None:
    table = read_table(name)
    parse_all([column.measure for column in table.columns])
    assert table.columns
    for simulated in (True, False):
        data: Any = SimpleNamespace(simulated=simulated, location="/data")
        for row in table.rows.values():
            if row.model:
                config = training_config(table, row, data, Budget(steps=100))
                assert config.model == row.model
                assert config.training.steps == max(1, round(100 * row.share)), row.name


@pytest.mark.parametrize(("name", "paper"), SOURCES.items())
def test_printed_figures_stand_in_the_paper(name: str, paper: str) -> None:
    file = PAPERS / f"{paper}.txt"
    if not file.is_file():
        pytest.skip("the papers are not at hand")
    printed = re.findall(r"\d+\.\d+|\b0\b", file.read_text(encoding="utf-8"))
    numbers = [float(number) for number in printed]
    places: dict[float, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    for row in read_table(name).rows.values():
        figures = [float(figure) for figure in row.paper if figure is not None]
        if name == "tvr-ranking-6":  # one table after another, K by K
            figures = figures[:6]
        if figures:
            in_a_row = any(numbers[at : at + len(figures)] == figures for at in places.get(figures[0], []))
            assert in_a_row, (name, row.name)


def test_tables_that_share_rows_differ_in_columns_only() -> None:
    whole, part = read_table("debiased-2"), read_table("debiased-fig-11")
    assert part.rows["drn"].model == whole.rows["drn"].model
    assert part.simulation == whole.simulation
    assert list(part.rows["drn"].paper) == [28.3, 17.0]
    assert not read_table("debiased-fig-12").rows["drn"].paper


def test_chosen_rows_bring_the_stages_they_need() -> None:
    table = read_table("mvmr-3")
    assert [row.name for row in table.choose_rows(["crocs-5"])] == ["crocs-first", "crocs", "prmr", "crocs-5"]
    assert "crocs-first" not in [row.name for row in read_table("mvmr-2").choose_rows(["mmn"])]
    with pytest.raises(MomentseekError, match=r"^mvmr-2 has no row 'crosc'; did you mean 'crocs'\?"):
        read_table("mvmr-2").choose_rows(["crosc"])


SMALL: dict[str, Any] = {
    "title": "t",
    "source": "s",
    "columns": [{"label": "a", "split": "test", "measure": "R@1[IoU>=0.5]"}],
}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"a": {"model": "mmn", "paper": [1, 2]}}, "t: rows.a has 2 figures for 1 columns"),
        ({"a": {"model": "crocs", "begin": "b"}}, "t: rows.a goes on from 'b', which is no row before it"),
        ({"a": {"model": "mmn", "of": "a"}}, "t: rows.a must have one of model, baseline and of"),
        ({"a": {"model": "mmn", "setings": {}}}, "t: rows.a: there is no 'setings'; did you mean 'settings'"),
        ({"a": {"model": "mmn", "use": ["map"]}}, "t: rows.a: there are no settings 'map'"),
    ],
)
def test_mistakes_in_a_file_are_told(rows: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MomentseekError, match=re.escape(sentence)):
        parse_table({**SMALL, "rows": rows}, "t")
