"""``momentseek config``: choose defaults of commands once, in a settings file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click

from momentseek.cli import options
from momentseek.core.config import LIBRARY_KEY, config_path, read_config, write_config
from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import text_table

NOT_KEPT = {"help", "yes", "force", "json", "csv", "token", LIBRARY_KEY}
"""Options that are asked for each time: what destroys something, what scripts rely on, what is secret."""
WITHOUT_SETTINGS = ("config", "models", "data", "demo", "doctor", "completion")
"""Commands that take no settings: groups of others, and those whose options are for one time."""
YES_AND_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def command_defaults(context: click.Context) -> dict[str, Any]:
    """What the settings file says for the command that is about to run, as click takes defaults."""
    name = context.invoked_subcommand
    group = context.command
    if name in (None, *WITHOUT_SETTINGS) or not isinstance(group, click.Group):
        return {}
    found = read_config()
    check_tables(found, group.list_commands(context))
    command = group.get_command(context, str(name))
    given = found.get(str(name), {})
    if command is None or not given:
        return {}
    options = settable_options(command)
    defaults = {}
    for key, value in given.items():
        option = _find_option(f"{name}.{key}", key, options)
        defaults[str(option.name)] = _checked_value(f"{name}.{key}", option, value, context)
    return {str(name): defaults}


def check_tables(found: Mapping[str, Any], commands: list[str]) -> None:
    """Refuse tables that belong to no command, and values outside tables other than ``library``."""
    known = [name for name in commands if name not in WITHOUT_SETTINGS]
    for key, value in found.items():
        if key != LIBRARY_KEY and not (key in known and isinstance(value, Mapping)):
            _refuse(key, [LIBRARY_KEY, *known])


def settable_options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command that a setting can choose, by their long names without the dashes."""
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    named = {max(option.opts, key=len).lstrip("-"): option for option in options}
    return {name: option for name, option in named.items() if name not in NOT_KEPT}


def parse_setting(key: str, words: tuple[str, ...], group: click.Group, context: click.Context) -> Any:
    """The value that ``words`` mean for a key, as it stands in the file; refused as the flag would refuse it."""
    if key == LIBRARY_KEY:
        if len(words) != 1 or not words[0]:
            raise MomentseekError("library takes one name or path")
        return words[0]
    option = find_setting(key, group, context)
    if option.multiple:
        value: Any = list(words)
    elif len(words) != 1:
        raise MomentseekError(f"{key} takes one value, not {len(words)}; quote it if it has spaces")
    else:
        value = _plain_value(key, option, words[0])
    _checked_value(key, option, value, context)
    return value


def find_setting(key: str, group: click.Group, context: click.Context) -> click.Option:
    """The option that a key such as ``search.k`` means."""
    table, dot, name = key.partition(".")
    known = [one for one in group.list_commands(context) if one not in WITHOUT_SETTINGS]
    command = group.get_command(context, table) if table in known else None
    if command is None or not dot:
        _refuse(key, [LIBRARY_KEY, *(f"{one}.…" for one in known)] if not dot else [f"{one}.{name}" for one in known])
    return _find_option(key, name, settable_options(command))


def _find_option(key: str, name: str, options: Mapping[str, click.Option]) -> click.Option:
    if name not in options:
        table = key.partition(".")[0]
        if name == LIBRARY_KEY:
            raise MomentseekError(f"{config_path()}: {key} is no setting; library stands by itself, for all commands")
        if name in NOT_KEPT:
            raise MomentseekError(f"{config_path()}: {key} cannot be a setting; give --{name} when it is wanted")
        _refuse(key, [f"{table}.{one}" for one in options])
    return options[name]


def _plain_value(key: str, option: click.Option, word: str) -> Any:
    """A word as the file writes it: yes and no for a switch, a number where the option takes one."""
    if option.is_flag:
        if word.lower() not in YES_AND_NO:
            raise MomentseekError(f"{key} is a switch; write yes or no, not {word!r}")
        return YES_AND_NO[word.lower()]
    for kind, numbers in ((int, click.types.IntParamType), (float, click.types.FloatParamType)):
        if isinstance(option.type, numbers):
            try:
                return kind(word)
            except ValueError:
                break  # the option itself says what is wrong
    return word


def _checked_value(key: str, option: click.Option, value: Any, context: click.Context) -> Any:
    """The value if its option takes it."""
    if (
        isinstance(value, Mapping)
        or isinstance(value, list) != option.multiple
        or option.is_flag != (isinstance(value, bool))
    ):
        what = "a list" if option.multiple else "true or false" if option.is_flag else "one value"
        raise MomentseekError(f"{config_path()}: {key} must be {what}; correct it with: momentseek config set {key} …")
    try:
        option.type_cast_value(context, value)
    except click.BadParameter as e:
        raise MomentseekError(f"{config_path()}: {key}: {e.message.rstrip('.')}") from None
    return value


def _refuse(key: str, known: list[str]) -> NoReturn:
    hint = did_you_mean(key, known, "`momentseek config list --all` shows what there is")
    raise MomentseekError(f"{config_path()}: there is no setting {key!r}; {hint}")


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
