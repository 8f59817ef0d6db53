"""``momentseek config``: choose once what commands do by default."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from momentseek.cli import options
from momentseek.cli.settings import WITHOUT_SETTINGS, check_tables, find_setting, parse_setting, settable_options
from momentseek.config import LIBRARY_KEY, config_path, read_config, write_config
from momentseek.errors import MomentseekError


@click.group()
def command() -> None:
    """Choose once what commands do by default, in a settings file (TOML).

    A key is `library`, or a command and one of its options: search.k, serve.port, add.encoder. A flag on the command
    line counts more than the environment, and the environment more than the file.

    \b
      momentseek config set library films
      momentseek config set search.k 10
      momentseek config set serve.folder ~/Videos ~/Camera
      momentseek config list
      momentseek config unset search.k
    """


@command.command("list")
@click.option("--all", "show_all", is_flag=True, help="Every key that can be set, and what it is for.")
@options.as_json
@click.pass_context
def list_settings(context: click.Context, show_all: bool, as_json: bool) -> None:
    """List what is set; with --all, what can be.

    \b
      momentseek config list
      momentseek config list --all
    """
    if show_all:
        about = dict(_about_all(context))
        if as_json:
            options.echo_json(about)
            return
        from momentseek.tables import text_table

        click.echo(text_table(["key", "what it is"], [[key, text] for key, text in about.items()], align="ll"))
        return
    found = dict(_flat(_settings(context)))
    if as_json:
        options.echo_json(found)
        return
    for key, value in found.items():
        click.echo(f"{key} = {_value_text(value)}")
    if not found:
        options.say(f"nothing is set; {config_path()} would hold it")


@command.command("get")
@click.argument("key")
@options.as_json
@click.pass_context
def get_setting(context: click.Context, key: str, as_json: bool) -> None:
    """Print the value of a key; exit code 1 if it is not set.

    \b
      momentseek config get search.k
    """
    if key != LIBRARY_KEY:
        find_setting(key, _group(context), context)
    found = dict(_flat(_settings(context)))
    if key not in found:
        options.say(f"{key} is not set")
        sys.exit(1)
    if as_json:
        options.echo_json(found[key])
    else:
        click.echo(_value_text(found[key]))


@command.command("set")
@click.argument("key")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@click.pass_context
def set_setting(context: click.Context, key: str, values: tuple[str, ...]) -> None:
    """Set a key; what its option would refuse is refused. Several values are for options that may be repeated.

    \b
      momentseek config set add.encoder hub:siglip2-base
      momentseek config set search.explain yes
    """
    value = parse_setting(key, values, _group(context), context)
    settings = _settings(context)
    table, _, name = key.partition(".")
    if name:
        settings.setdefault(table, {})[name] = value
    else:
        settings[table] = value
    options.say(f"{key} = {_value_text(value)}, in {write_config(settings)}")


@command.command("unset")
@click.argument("key")
@click.pass_context
def unset_setting(context: click.Context, key: str) -> None:
    """Forget a key, whether or not its option still exists.

    \b
      momentseek config unset search.k
    """
    settings = read_config()
    table, _, name = key.partition(".")
    if key not in dict(_flat(settings)):
        raise MomentseekError(f"{config_path()}: {key} is not set; `momentseek config list` shows what is")
    if name:
        del settings[table][name]
    else:
        del settings[table]
    options.say(f"{key} is no longer set in {write_config(settings)}")


@command.command("path")
def print_path() -> None:
    """Print where the settings file is, or would be.

    \b
      $EDITOR "$(momentseek config path)"
    """
    click.echo(str(config_path()))


def _group(context: click.Context) -> click.Group:
    """The whole command line, whose options settings are."""
    root = context.find_root().command
    assert isinstance(root, click.Group)
    return root


def _settings(context: click.Context) -> dict[str, Any]:
    """The settings file, every key of which an option takes."""
    found = read_config()
    group = _group(context)
    check_tables(found, group.list_commands(context))
    for key, _ in _flat(found):
        if key != LIBRARY_KEY:
            find_setting(key, group, context)
    return found


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", one) for name, one in value.items())
        else:
            yield key, value


def _about_all(context: click.Context) -> Iterator[tuple[str, str]]:
    yield LIBRARY_KEY, "Which library all commands use: a name, or a path with a separator."
    group = _group(context)
    for name in group.list_commands(context):
        one = group.get_command(context, name) if name not in WITHOUT_SETTINGS else None
        for key, option in settable_options(one).items() if one is not None else ():
            yield f"{name}.{key}", option.help or ""


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
