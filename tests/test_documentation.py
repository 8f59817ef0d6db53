"""What README and docs say must be true: commands run, outputs match, links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from momentseek.core.native.kernels import kernels
from momentseek.models import registry as model_registry
from momentseek.recognition.encoders import registry

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "momentseek"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = f"{sys.executable} -m momentseek"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def shell(command: str, **variables: object) -> str:
    result = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {name: str(value) for name, value in variables.items()},
    )  # fmt: skip
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return result.stdout


README = [line for block in blocks(PAGES[0], "sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def libraries(sample, tmp_path_factory):
    """Where libraries go, so that none is left in the home of whoever runs the tests; the demo's already exists."""
    folder = tmp_path_factory.mktemp("libraries")
    shutil.copytree(sample / "library", folder / "momentseek/demo")
    (folder / "momentseek/demo-films").symlink_to(sample / "films")
    return folder


@pytest.mark.parametrize("command", [c for c in README if not c.startswith("make")])
def test_readme_commands(command, libraries):
    assert command.startswith(".venv/bin/momentseek ")
    assert shell(command.replace(".venv/bin/momentseek", COMMAND, 1), XDG_DATA_HOME=libraries)


def test_readme_output_is_what_the_command_prints():
    command = next(c for c in README if "figure-2" in c)
    assert blocks(PAGES[0], "text") == [shell(command.replace(".venv/bin/momentseek", COMMAND, 1))]


@pytest.mark.parametrize("words", ["--no-words", pytest.param("", marks=pytest.mark.figures)], ids=["", "words"])
def test_make_demo_shows_the_worked_example(words, sample, tmp_path):
    """Only `make test-all` has the film that speaks heard and the slide read, as `make demo` does."""
    assert "make demo" in README
    assert "sh examples/demo.sh .venv/bin/momentseek .venv/demo" in shell("make --dry-run demo")
    wrapper = tmp_path / "momentseek"
    wrapper.write_text(f'#!/bin/sh\n[ $1 = demo ] && set -- "$@" {words}\nexec {COMMAND} "$@"\n')
    wrapper.chmod(0o755)
    shutil.copytree(sample / "library", tmp_path / "demo/library")
    (tmp_path / "demo/films").symlink_to(sample / "films")
    output = shell(f"sh examples/demo.sh {wrapper} {tmp_path / 'demo'}")
    assert "NDCG@3[IoU>=0.3]  0.8821" in output
    assert "significantly better" in output
    assert "The right scene is first for" in output


def test_make_test_and_ci_run_the_suite():
    assert "make test" in README
    assert "pytest" in shell("make --dry-run test")
    assert "make test" in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_run(page, monkeypatch):
    if page.name == "architecture.md" and kernels() is None:
        pytest.skip("the kernels in C are not built")
    monkeypatch.chdir(ROOT)
    for table in ("TEXT_ENCODERS", "IMAGE_TEXT_ENCODERS"):  # to which examples add
        monkeypatch.setattr(registry, table, getattr(registry, table).copy())
    if page.name == "plugins.md":
        monkeypatch.setattr(model_registry, "MODELS", model_registry.MODELS.copy())
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def test_index_lists_every_page_once():
    index = ROOT / "docs/index.md"
    targets = [
        (index.parent / link).resolve() for link in re.findall(r"^\| \[[^\]]*\]\(([^)#]+)\)", index.read_text(), re.M)
    ]
    pages = {path for path in (ROOT / "docs").rglob("*.md") if path.name not in ("index.md", "gallery.md")}
    joined = {ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}
    assert sorted(targets) == sorted(pages | joined)


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(page):
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", (ROOT / page).read_text()))
    folders = [
        ROOT,
        PACKAGE,
        *(path for path in PACKAGE.iterdir() if path.is_dir()),
        PACKAGE / "measuring" / "measures",
    ]
    assert {name for name in named if not any((folder / name).exists() for folder in folders)} == set()


def test_every_dependency_has_its_reason():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for group in project["optional-dependencies"].values() for d in group)]
    reasons = (ROOT / "docs/dependencies.md").read_text()
    for requirement in wanted:
        name = re.split(r"[\[><=]", requirement)[0]
        assert name == "momentseek" or name in reasons


def test_every_measure_and_protocol_is_documented():
    from momentseek.measuring.measures import MEASURES, PROTOCOLS

    measures, protocols = (ROOT / "docs/measures.md").read_text(), (ROOT / "docs/evaluating.md").read_text()
    own = [m for m in MEASURES if MEASURES[m].__module__.startswith("momentseek.")]  # a guide loads a plug-in
    assert own
    assert [m for m in own if f"`{m}" not in measures] == []
    assert [p for p in PROTOCOLS if f"`{p}`" not in protocols] == []


def test_the_commands_that_show_what_users_ask_for_exist():
    """Twenty-nine wishes, each with a command whose words and options are known."""
    import shlex

    import click

    from momentseek.cli import cli

    page = (ROOT / "docs/measurements/search-quality.md").read_text()
    wishes = page.partition("## What users of similar tools ask for")[2]
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", wishes, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 30))
    for _, shown in rows:
        commands = re.findall(r"`momentseek ([^`]*)`", shown)
        assert commands, shown
        for words in map(shlex.split, commands):
            command = cli
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):  # serve is both
                name = words.pop(0)
                command = command.get_command(click.Context(command), name)
                assert command is not None, shown
            command.make_context("momentseek", words, resilient_parsing=True)
            known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
            assert {word for word in words if word.startswith("--")} <= known, words
