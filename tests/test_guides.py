"""The commands of the guides run in their order and print what is shown; every other documented command exists."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from momentseek.cli import cli

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
ENDLESS = {"serve", "mcp"}
"""Commands that run until they are stopped; their tests are elsewhere."""


def shown(page: Path) -> Iterator[tuple[str, str]]:
    """The commands of a page's console blocks, each with the output that the page shows."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for command in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            line, _, output = command.partition("\n")
            yield line, output


def words_of(line: str) -> list[str]:
    """The words after ``momentseek``; none for another command."""
    words = shlex.split(line, comments=True)
    return words[1:] if words[:1] == ["momentseek"] else []


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words call, and those that are left for it."""
    command: click.Command = cli
    words = list(words)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):  # serve is both
        found = command.get_command(click.Context(command), words[0])
        if found is None and getattr(command, "invoke_without_command", False):
            break
        assert found is not None, words[0]
        command, words = found, words[1:]
    return command, words


def check_options(words: list[str]) -> None:
    """Whether a command and its options exist, without running it."""
    command, rest = find_command(words)
    known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    asked = {word.partition("=")[0] for word in rest if re.match("--[a-z]", word)}
    assert asked <= known | {"--help"}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_documented_commands_and_their_options_exist(page: Path) -> None:
    for line, _ in shown(page):
        for part in re.split(r" (?:&&|\||;) ", line):
            if re.fullmatch(r"[^…\[]*", part) and (words := words_of(part)):
                check_options(words)


@pytest.fixture
def desk(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, and a home with videos in ``Videos`` that the library has seen under another name."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(sample / "films", tmp_path / "home/Videos")
    shutil.copytree(sample / "library", tmp_path / "data/momentseek/default")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MOMENTSEEK_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


def walk(
    page: str,
    desk: Path,
    momentseek: Callable[..., Any],
    *,
    without: tuple[str, ...] = (),
    before: Callable[[list[str]], object] = list,
) -> int:
    """Run a guide's commands, ``before`` each of them what somebody else would do; returns how many."""
    done = 0
    for line, output in shown(DOCS / "guides" / page):
        words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in words_of(line)]
        check_options(words)
        if not words or line.removeprefix("momentseek ").startswith(without):
            continue
        if words[0] in ENDLESS and words[1:2] != ["users"]:
            continue
        before(words)
        result = momentseek(*words, cwd=desk)
        assert result.returncode == 0, f"{line}\n{result.stderr}"
        if output:
            pattern = re.escape(output).replace("…", ".*")
            assert re.fullmatch(pattern, result.stdout or result.stderr), f"{line}\n{result.stdout}"
        done += 1
    return done


def test_search_your_videos(desk: Path, momentseek: Callable[..., Any]) -> None:
    assert walk("search.md", desk, momentseek, without=("demo", "models get")) == 9
    assert [path.suffix for path in (desk / "clips").iterdir()] == [".mp4"]
    assert (desk / "clips.html").exists()


def test_measure_a_system(desk: Path, momentseek: Callable[..., Any]) -> None:
    assert walk("measure.md", desk, momentseek) == 8


@pytest.mark.slow
def test_build_a_benchmark(desk: Path, momentseek: Callable[..., Any]) -> None:
    pytest.importorskip("h5py")

    def annotate(words: list[str]) -> None:
        if words[1:3] == ["label-studio", "read"]:
            tasks = json.loads((desk / "tasks.json").read_text())
            (desk / "export.json").write_text(json.dumps(_judge(tasks)))

    assert walk("benchmark.md", desk, momentseek, before=annotate) == 8
    assert (desk / "judged.jsonl").read_text().count("\n") == 287


def _judge(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Label Studio's export after two people have judged every task."""
    return [
        task
        | {
            "annotations": [
                {
                    "completed_by": {"email": worker},
                    "result": [{"from_name": "relevance", "type": "rating", "value": {"rating": number % 5}}],
                }
                for worker in ("ann", "bob")
            ]
        }
        for number, task in enumerate(tasks)
    ]


@pytest.mark.slow
def test_train_a_model(desk: Path, momentseek: Callable[..., Any]) -> None:
    pytest.importorskip("torch")
    assert walk("train.md", desk, momentseek) == 5


def test_run_it_for_a_team(desk: Path, momentseek: Callable[..., Any]) -> None:
    assert walk("team.md", desk, momentseek) == 6


def test_contribute(desk: Path, momentseek: Callable[..., Any]) -> None:
    assert walk("contribute.md", desk, momentseek) == 1
    targets = {line.split()[1] for line, _ in shown(DOCS / "guides/contribute.md") if line.startswith("make")}
    assert targets <= set(re.findall(r"^([\w-]+)(?: [\w-]+)*:", (ROOT / "Makefile").read_text(), re.MULTILINE))
