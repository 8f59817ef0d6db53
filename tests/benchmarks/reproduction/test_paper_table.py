from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from momentseek.benchmarks.reproduction.paper_table import TableRow, parse_table, read_table, table_names
from momentseek.benchmarks.reproduction.rows import Budget, check_given, paper_differences, row_tasks, training_config
from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures import parse_all
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.presets import configure, preset_table

PAPERS = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared")) / "papers"
SOURCES = {
    "debiased-2": "debiased-grounding-mdd",
    "debiased-3": "debiased-grounding-mdd",
    "debiased-4": "debiased-grounding-mdd",
    "debiased-2-activitynet": "debiased-grounding-mdd",
    "mvmr-2": "mvmr-crocs",
    "mvmr-2-activitynet": "mvmr-crocs",
    "mvmr-2-tacos": "mvmr-crocs",
    "mvmr-3": "mvmr-crocs",
    "mvmr-3-activitynet": "mvmr-crocs",
    "tvr-ranking-5": "tvr-ranking",
    "tvr-ranking-6": "tvr-ranking",
    "tvr-3": "tvr-xml",
    "tvr-5": "tvr-xml",
    "tvr-7": "tvr-xml",
    "tvr-8": "tvr-xml",
    "tvr-9": "tvr-xml",
    "tvr-11": "tvr-xml",
    "tvr-12": "tvr-xml",
}


@pytest.mark.parametrize("name", table_names())
def test_every_row_of_every_table_has_settings_that_its_model_knows(name: str) -> None:
    table = read_table(name)
    parse_all([column.measure for column in table.columns])
    assert table.columns
    for simulated in (True, False):
        for row in table.rows.values():
            if row.model:
                config = training_config(table, row, simulated, "/data", Budget(steps=100))
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


EVALUATORS = {
    "tvr-ranking": "tvr-ranking",
    "tvr-11": "tvc",
    "tvr-12": "tvc",
    "tvr": "tvr",
    "mvmr": "mvmr",
    "debiased": "paper",
    "axiou": "paper",
    "qvhighlights": "qvhighlights",
}


def test_figures_that_only_the_text_prints_are_there() -> None:
    films, clips = read_table("debiased-fig-11-activitynet").rows, read_table("debiased-fig-11").rows
    assert [films[name].paper for name in ("bias-based", "predict-all")] == [[13.6, 0.1], [13.8, 0.0]]
    assert clips["predict-all"].paper == [0.0, 0.0]
    assert not clips["bias-based"].paper
    seconds = {row.name: row.seconds for row in read_table("tvr-3").rows.values() if row.seconds}
    assert seconds == {"mee-mcn-tef": 66.8, "mee-cal-tef": 161.5, "mee-excl-tef": 1307.2, "xml-tef": 25.5}


def test_sources_of_figures_are_those_of_rows_that_have_figures() -> None:
    table = read_table("qvhighlights")
    for name, row in (("Moment-DETR", "moment_detr"), ("QD-DETR", "qd_detr"), ("UniVTG", "univtg")):
        assert (name in table.source) == bool(table.rows[row].paper)
    assert list(table.rows["qd_detr"].paper[:3]) == [62.4, 44.98, 39.86], "with video alone, as our preset"


@pytest.mark.parametrize("name", table_names())
def test_every_table_is_measured_as_its_paper_measures(name: str) -> None:
    paper = next(key for key in EVALUATORS if name.startswith(key))
    assert read_table(name).protocol == EVALUATORS[paper]


@pytest.mark.parametrize("name", table_names())
@pytest.mark.parametrize("simulated", [True, False])
def test_no_two_rows_of_a_table_are_one_training(name: str, simulated: bool) -> None:
    table = read_table(name)
    seen: dict[str, str] = {}
    for row in table.rows.values():
        if row.hidden:  # a first stage may be what another row shows
            continue
        config = training_config(table, row, simulated, "", Budget()).table() if row.model else None
        what = repr((config, row.baseline, row.needs, row.first))
        assert what not in seen, f"{row.name} is {seen.get(what)} under another name"
        seen[what] = row.name


@pytest.mark.parametrize("name", table_names())
@pytest.mark.parametrize("simulated", [True, False])
def test_no_row_takes_the_run_of_another(name: str, simulated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_table(name)
    shown = [row for row in table.rows.values() if row.model and not row.hidden]
    data: Any = SimpleNamespace(fingerprint_of=lambda _: "data")

    def trained(row: TableRow) -> TrainConfig:
        config = training_config(table, row, simulated, "", Budget())
        return replace(config, data=replace(config.data, begin=row.begin, first_stage=row.first_stage))

    for given in shown:
        saved = SimpleNamespace(config=trained(given), imported=False, fingerprint="data")
        monkeypatch.setattr("momentseek.benchmarks.reproduction.rows._saved_run", lambda *_, saved=saved: saved)
        for row in shown:
            run = Path("run")
            if row is given:
                check_given(table, row, [run], trained(row), data)
            elif row.model == given.model:
                with pytest.raises(MomentseekError, match=rf"^row {row.name}: run has .*, not .*; give another run$"):
                    check_given(table, row, [run], trained(row), data)


def test_rows_searched_after_another_model_search_as_many_videos_as_the_others() -> None:
    table = read_table("tvr-3")
    depths = {row.name: row.first for row in table.rows.values() if row.of}
    assert set(depths.values()) == {100}
    data: Any = SimpleNamespace(simulated=True, location="", fingerprint_of=lambda _: "data")
    tasks = row_tasks(table, list(table.rows.values()), data, Path("out"), Budget(seeds=1), {})
    assert {tasks[name][0].row.first for name in depths} == {20}
    config = tasks["mee-excl"][0].config
    assert config is not None
    assert config.model_config.videos == 20
    assert "MEE + MCN, MEE + MCN (TEF), MEE + CAL, MEE + CAL (TEF): videos 20 (100)" in paper_differences(table, tasks)
    data.simulated = False
    tasks = row_tasks(table, list(table.rows.values()), data, Path("out"), Budget(seeds=1), {})
    assert {tasks[name][0].row.first for name in depths} == {100}
    assert paper_differences(table, tasks) == ""


def test_rows_are_what_their_names_say() -> None:
    table = read_table("tvr-3")
    for name in ("mcn", "cal"):
        for row, there in ((name, False), (f"{name}-tef", True)):
            for simulated in (True, False):
                config = training_config(table, table.rows[row], simulated, "", Budget()).table()["model"]
                assert config["moment_endpoints"] is there, row
    assert training_config(table, table.rows["mee-excl"], True, "", Budget()).table()["model"]["endpoints"] is False
    for name in ("mvmr-2", "mvmr-3", "mvmr-2-activitynet", "mvmr-3-activitynet", "mvmr-2-tacos"):
        table = read_table(name)
        for row in ("dagger", "crocs-first", "crocs"):
            config = training_config(table, table.rows[row], True, "", Budget()).table()["model"]
            assert config["reject"] == 1.0, "equation 4 is in both stages"
        first, second = (
            training_config(table, table.rows[row], False, "", Budget()).training.lr for row in ("crocs-first", "crocs")
        )
        assert second == pytest.approx(0.1 * first)
    for name in ("debiased-2", "debiased-2-activitynet"):
        table = read_table(name)
        for simulated in (True, False):
            assert training_config(table, table.rows["drn"], simulated, "", Budget()).table()["model"]["stage"] == "all"
        assert training_config(table, table.rows["tsp_prl"], False, "", Budget()).training.patience is None
    table = read_table("tvr-ranking-5")
    assert training_config(table, table.rows["mee-20"], False, "", Budget()).table()["model"]["hidden"] == 256


@pytest.mark.parametrize(
    "name", ["tvr-3", "tvr-4", "tvr-5", "tvr-7", "tvr-8", "tvr-9", "tvr-ranking-5", "tvr-ranking-6"]
)
def test_real_data_choose_checkpoints_by_the_presets_measure(name: str) -> None:
    table = read_table(name)
    for row in table.rows.values():
        if row.model:
            config = training_config(table, row, False, "", Budget())
            assert (
                config.training.measure
                == configure(preset_table(row.preset or table.preset), row.model).training.measure
            )
            assert training_config(table, row, True, "", Budget()).training.measure != config.training.measure


def test_tables_that_share_rows_differ_in_columns_only() -> None:
    whole, part = read_table("debiased-2"), read_table("debiased-fig-11")
    assert part.rows["drn"].model == whole.rows["drn"].model
    assert part.simulation == whole.simulation
    assert list(part.rows["tan2d"].paper) == [30.38, 14.68]  # the figure's digits were another paper's
    assert not part.rows["drn"].paper
    assert read_table("debiased-fig-12").simulation["like"] == "activitynet"
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
    "protocol": "paper",
    "columns": [{"label": "a", "split": "test", "measure": "R@1[IoU>=0.5]"}],
}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"a": {"model": "mmn", "paper": [1, 2]}}, "t: rows.a.paper has 2 figures for 1 columns"),
        ({"a": {"model": "crocs", "begin": "b"}}, "t: rows.a continues from 'b', which is not a row before it"),
        ({"a": {"model": "mmn", "of": "a"}}, "t: rows.a must have one of model, baseline and of"),
        ({"a": {"model": "mmn", "setings": {}}}, "t: rows.a.setings: there is no such key; did you mean 'settings'"),
        ({"a": {"model": "mmn", "use": ["map"]}}, "t: rows.a: there are no settings 'map'"),
    ],
)
def test_mistakes_in_a_file_are_told(rows: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MomentseekError, match=re.escape(sentence)):
        parse_table({**SMALL, "rows": rows}, "t")


OWN = """title = "Mine"
task = "SVMR"
seeds = 2
data = "films"

[[columns]]
label = "a"
split = "test"
measure = "R@1[IoU>=0.5]"

[[columns]]
label = "b"          # [not a header]
split = "test"
measure = "R@1[IoU>=0.7]"

[rows.ours]
model = "tan2d"
settings = { hidden = 8 }
paper = [1, 2]
"""


def test_a_table_of_ones_own_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    table = read_table(tmp_path / "mine.toml")
    assert (table.name, table.seeds, table.data) == ("mine", 2, str(tmp_path / "films"))
    assert table.rows["ours"].paper == [1, 2]
    config = training_config(table, table.rows["ours"], False, "films", Budget())
    assert (config.training.task, config.training.measure) == ("SVMR", table.columns[0].measure)
    (tmp_path / "more.toml").write_text(
        'extends = "mine.toml"\ntitle = "More"\n[rows.ours]\n[rows.best]\nof = "ours"\n'
    )
    more = read_table(str(tmp_path / "more.toml"))
    assert (more.title, more.rows["ours"].model, more.rows["best"].of) == ("More", "tan2d", "ours")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('measure = "R@1[IoU>=0.7]"', 'measure = "R@1[IuO>=0.7]"', "line 14: columns.2.measure: measure 'R@1[IuO"),
        ('label = "b" ', 'lable = "b" ', "line 12: columns.2.lable: there is no such key; did you mean 'label'?"),
        ("paper = [1, 2]", "paper = [1]", "line 19: rows.ours.paper has 1 figures for 2 columns"),
        ("seeds = 2", "seeds = true", "line 3: seeds must be a whole number, not True"),
        ("seeds = 2", "seeds = 0", "line 3: seeds must be at least 1, not 0"),
        ('task = "SVMR"', 'task = "SVRM"', "line 2: task must be SVMR or VCMR or VR or captions, not 'SVRM'"),
        ('model = "tan2d"', "model = 3", "line 17: rows.ours.model must be a text, not 3"),
        ('model = "tan2d"\n', "", "line 16: rows.ours must have one of model, baseline and of"),
        ("[rows.ours]", "[row.ours]", "line 16: row: there is no such key; did you mean 'rows'?"),
        ('title = "Mine"', "title = ", "cannot be read as TOML"),
    ],
)
def test_mistakes_in_ones_own_table_name_key_and_line(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in OWN
    (tmp_path / "mine.toml").write_text(OWN.replace(old, new))
    with pytest.raises(MomentseekError) as found:
        read_table(tmp_path / "mine.toml")
    assert str(found.value).startswith(str(tmp_path / "mine.toml"))
    assert sentence in str(found.value)


def test_a_model_that_does_not_exist_is_named_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN.replace("tan2d", "tan3d"))
    table = read_table(tmp_path / "mine.toml")
    with pytest.raises(MomentseekError, match=r"mine.toml, line 16: rows.ours: there is no model 'tan3d'"):
        training_config(table, table.rows["ours"], False, "", Budget())
