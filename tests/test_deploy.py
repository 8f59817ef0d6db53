"""The files for Docker and Kubernetes: they can be parsed, and the commands in them exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from momentseek.cli import cli

ROOT = Path(__file__).parent.parent
COMMENTED = re.compile(r"^#.* (momentseek .*)$", re.M)


def load(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / "deploy" / name).read_text())


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def check_command(words: list[str]) -> None:
    """Whether a command and its options are there, without running it."""
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, words
    command.make_context(words[0], words[1:], resilient_parsing=True)
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words[1:] if word.startswith("--")} <= known, words


def test_image_is_slim_not_root_and_has_a_health_check() -> None:
    found = dict(instructions())
    assert found["FROM"].endswith("-slim")
    assert found["USER"] == "momentseek"
    assert '"python"' in found["HEALTHCHECK"]
    assert json.loads(found["ENTRYPOINT"]) == ["momentseek"]
    check_command(json.loads(found["CMD"]))


def test_the_image_installs_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = re.search(r"\.\[([\w,]+)\]", (ROOT / "Dockerfile").read_text())
    assert asked is not None
    assert set(asked[1].split(",")) <= set(extras)
    assert {"offline", "speech", "ocr", "serve", "mcp"} <= set(asked[1].split(","))


def test_everything_that_is_copied_into_the_image_is_there() -> None:
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest


def test_compose_starts_servers_that_share_a_database() -> None:
    services = load("compose.yaml")["services"]
    check_command(services["server"]["command"])
    address = services["server"]["command"][-1]
    name = services["database"]["environment"]["POSTGRES_DB"]
    assert address == f"postgresql://momentseek@database/{name}?sslmode=disable"
    assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])
    assert "ports" not in services["database"]
    assert {volume.split(":")[0] for one in services.values() for volume in one["volumes"]} >= {"library", "database"}


def test_one_command_adds_watches_and_serves() -> None:
    command = load("home.yaml")["services"]["server"]["command"]
    unit = (ROOT / "deploy" / "momentseek.service").read_text()
    started = shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.M)[1])  # type: ignore[index]
    assert started[0].endswith("/momentseek")
    for words in (command, started[1:], json.loads(dict(instructions())["CMD"])):
        check_command(words)
        assert words[0] == "serve"
        assert {"--watch", "--folder"} <= set(words)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "deploy").glob("*.yaml")))
def test_the_commands_in_comments_exist(name: str) -> None:
    for line in COMMENTED.findall((ROOT / "deploy" / name).read_text()):
        check_command(shlex.split(line)[1:])
