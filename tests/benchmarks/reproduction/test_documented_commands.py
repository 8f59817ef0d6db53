"""The commands of docs/measurements/papers.md, run with small sizes, and the items of the papers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.recognition.encoders.fakes import needs_minilm

from momentseek.benchmarks.reproduction.paper_table import read_table, table_names
from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import cli

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "measurements" / "papers.md"
COMMANDS = re.findall(r"^\$ momentseek (.*)$", PAGE.read_text(), re.MULTILINE)
SIZES = {
    "simulate --like": ["--videos", "60", "--pool", "4", "--video-dim", "64", "--text-dim", "8"],
    "simulate": ["--videos", "40", "--queries", "120", "--video-dim", "64", "--text-dim", "8"],
    "data massive": ["--pool", "3"],
    "train": ["--set", "steps=20", "--set", "hidden=8", "--set", "batch=4", "-q"],
}
"""What makes a command small; the last option of a name counts."""
PAPERS = {"TVR and XML": (14, 18), "TVR-Ranking": (8, 7), "Debiased": (4, 12), "MVMR": (3, 10), "AxIoU": (0, 2)}
"""Tables and figures of each paper."""


def small_data(table: str) -> Path:
    """A folder of small data like that of a table's simulation."""
    settings = read_table(table).simulation
    like = settings.get("like", "tvr")
    folder = Path("small") / f"{like}-{bool(settings.get('streams'))}"
    if not folder.exists():
        if like == "tvr":
            simulate(folder, SimulationSettings(videos=40, queries=40, video_dim=64, text_dim=8, streams=True))
        else:
            simulate_grounding(folder, GroundingSettings(videos=60, pool=4, video_dim=12, text_dim=8, like=like))
    return folder


def make_small(words: list[str]) -> list[str]:
    if words[0] == "reproduce" and "--list" not in words:
        sets = ["--set", "hidden=8", "--set", "batch=4", "--set", "heads=2"]
        if words[1].startswith(("debiased", "mvmr")):
            sets = sets[:-2]
        where = ["--data", str(small_data(words[1])), "--out", "reproduction", "-q"]
        return [*words, *where, "--seeds", "1", "--steps", "2", *sets]
    name = next((key for key in SIZES if " ".join(words).startswith(key)), None)
    return [*words, *SIZES[name]] if name else words


def test_documented_commands_run_with_small_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) > 15
    for command in COMMANDS:
        words = shlex.split(command)
        if words[:2] == ["data", "massive"] and needs_minilm.args[0]:
            continue
        result = CliRunner().invoke(cli, make_small(words))
        assert result.exit_code == 0, (command, result.exception, result.output)
    pictures = {path.stem for path in Path("figures").rglob("*.png")}
    assert {"moment-lengths", "query-types", "similarity-relevance", "ranked-lists", "locations-after"} <= pictures


def rows_of_paper(name: str) -> list[tuple[str, str]]:
    (section,) = [s for s in PAGE.read_text().split("\n## ") if s.startswith(name)]
    return re.findall(r"^\| (.*?) \| (.*) \|$", section, re.MULTILINE)[1:]


@pytest.mark.parametrize("name", PAPERS)
def test_every_item_of_a_paper_is_listed_once(name: str) -> None:
    found: dict[str, list[int]] = {"Table": [], "Fig": []}
    for item, how in rows_of_paper(name):
        assert how.split(" | ")[-1].startswith(("✓", "○", "–")), item
        kind = "Table"
        for word in re.findall(r"Table|Fig|\d+(?: \([a-z]\))?", item):
            if word in found:
                kind = word
            elif not word.endswith(")") or word.endswith("(a)"):  # parts of one figure
                found[kind].append(int(word.split()[0]))
    tables, figures = PAPERS[name]
    assert sorted(found["Table"]) == list(range(1, tables + 1))
    assert sorted(found["Fig"]) == list(range(1, figures + 1))


def test_tests_that_the_page_names_exist() -> None:
    named = re.findall(r"`(tests/[^`]*)`", PAGE.read_text())
    assert len(named) > 8
    assert all((ROOT / name).exists() for name in named)


def test_commands_that_make_items_exist() -> None:
    named = set()
    made_by = "\n".join(how for name in PAPERS for _, how in rows_of_paper(name))
    for command in re.findall(r"`momentseek ([^`]*)`", made_by):
        words = shlex.split(command)
        found: click.Command = cli
        context = click.Context(cli)
        while isinstance(found, click.Group):
            following = found.get_command(context, words.pop(0))
            assert following is not None, command
            found = following
        known = {flag for p in found.params for flag in p.opts}
        assert {word for word in words if word.startswith("--")} <= known, command
        named |= {words[0]} if found.name == "reproduce" else set()
    of_papers = re.compile(r"(tvr-ranking|tvr|debiased|mvmr|axiou)-(fig-)?\d+(-activitynet|-tacos|-large)?")
    assert named == {name for name in table_names() if of_papers.fullmatch(name)}
