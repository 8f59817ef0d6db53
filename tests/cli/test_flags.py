"""Messages write parameters as in Python, or as flags on the command line."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.cli.groups import RenamedOption, flag_parameter


@click.command()
@click.option("--text-negative", type=float)
@click.option("--top", "-k", type=int)
@click.option("--measure", "-m", "measures", multiple=True)
@click.option("--from", "source", cls=RenamedOption, former=["--beside"])
@click.option("--force", is_flag=True)
@click.option("--recursive/--no-recursive", default=True)
@click.argument("run")
def command(**given: object) -> None:
    """A command with every kind of option."""
    click.echo(given["source"])


@pytest.mark.parametrize(
    ("name", "values", "typed"),
    [
        ("from", ("https://a",), "--from https://a"),
        ("source", ("my files",), "--from 'my files'"),
        ("beside", (), "--from"),
        ("text_negative", (0.5,), "--text-negative 0.5"),
        ("top", (1,), "--top 1"),
        ("top", (), "--top"),
        ("measures", (...,), "--measure"),
        ("force", (True,), "--force"),
        ("recursive", (False,), "--no-recursive"),
        ("source", ("a", "b", "c d"), "--from a, b or 'c d'"),
        ("run", (), "`run`"),
        ("task", ("VR",), 'task="VR"'),
    ],
)
def test_parameters_are_written_as_flags(name: str, values: tuple[object, ...], typed: str) -> None:
    with click.Context(command):
        assert flag_parameter(name, values) == typed


def test_parameters_without_a_command_are_written_as_in_python() -> None:
    assert flag_parameter("source", ("a",)) == 'source="a"'


def test_former_name_works_and_is_not_shown() -> None:
    assert CliRunner().invoke(command, ["run", "--beside", "there"]).stdout == "there\n"
    assert "--beside" not in CliRunner().invoke(command, ["--help"]).stdout


def test_former_name_prints_the_current_one_once() -> None:
    run = CliRunner().invoke(command, ["run", "--beside", "here", "--beside=there"])
    note = "momentseek: `--beside` is now `--from`; the former name still works for the time being\n"
    assert (run.stdout, run.stderr) == ("there\n", note)
    assert CliRunner().invoke(command, ["run", "--from", "there"]).stderr == ""


def options_of(command: click.Command) -> Iterator[click.Option]:
    """The options of a command and of all commands below it."""
    yield from (option for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options_of(found)


def test_help_names_the_value_of_every_option() -> None:
    context = click.Context(cli)
    shown = [(option.opts, option.make_metavar(context)) for option in options_of(cli) if not option.is_flag]
    assert [one for one in shown if one[1] in ("INTEGER", "FLOAT", "DIRECTORY") or "RANGE" in one[1]] == []
