"""``momentseek config`` and ``completion``: set the defaults of options, and set up shell completion.

Settings become click's ``default_map``: a key of the file is a command and one of its options (``search.k``,
``ocr.run.every``), and its value is checked like the flag's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import click
from click.shell_completion import get_completion_class

from momentseek.cli import options
from momentseek.cli.groups import LazyGroup, option_names
from momentseek.core.config import LIBRARY_KEY, config_path, read_config, write_config
from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean

PASSWORD = re.compile(r"(://[^/:@]*:)[^/@]*@")
"""A user's name and password in an address."""
NOT_KEPT = {"help", "yes", "force", "json", "csv", "token", "plugin", LIBRARY_KEY}
"""Options that cannot be settings: those that destroy data, that scripts rely on, or that are secret."""
WITHOUT_SETTINGS = ("config", "models", "data", "demo", "doctor", "completion")
"""Commands without settings: groups of commands, and commands whose options are for a single run."""
FORMER_OWNERS = {"transcript": ("transcript", "show")}
"""Former commands that are groups now → the command of the group that has their options."""


@click.group()
def config() -> None:
    """Set the defaults of command options, in a settings file (TOML).

    A key is `library`, or a command and one of its options: search.k, serve.port, add.encoder. A flag on the command
    line overrides the environment, and the environment overrides the file.

    \b
      momentseek config set library films
      momentseek config set search.k 10
      momentseek config set serve.folder ~/Videos ~/Camera
      momentseek config list
      momentseek config unset search.k
    """


@config.command("list")
@click.option("--all", "show_all", is_flag=True, help="List every key that can be set, with its help text.")
@options.as_json
@click.pass_context
def list_settings(context: click.Context, show_all: bool, as_json: bool) -> None:
    """List the current settings; with --all, every key that can be set.

    \b
      momentseek config list
      momentseek config list --all
    """
    found = dict(_every_setting(context)) if show_all else dict(_checked_settings(context))
    if not show_all:
        found = {key: _without_password(value) for key, value in found.items()}
    if as_json:
        options.echo_json(found)
    elif show_all:
        options.echo_table(["key", "what it is"], list(map(list, found.items())), align="ll")
    else:
        for key, value in found.items():
            click.echo(f"{key} = {_value_text(value)}")
        if not found:
            options.say(f"nothing is set; settings are stored in {config_path()}")


@config.command("get")
@click.argument("key")
@options.as_json
@click.pass_context
def get_setting(context: click.Context, key: str, as_json: bool) -> None:
    """Print the value of a key; exit code 1 if it is not set.

    \b
      momentseek config get search.k
    """
    if key != LIBRARY_KEY:
        find_option(context, key)
    found = dict(_checked_settings(context))
    if key not in found:
        options.say(f"{key} is not set")
        sys.exit(1)
    if as_json:
        options.echo_json(found[key])
    else:
        click.echo(_value_text(found[key]))


@config.command("set")
@click.argument("key")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@click.pass_context
def set_setting(context: click.Context, key: str, values: tuple[str, ...]) -> None:
    """Set a key to a value that its option accepts. Options that are repeatable take several values.

    \b
      momentseek config set add.encoder hub:siglip2-base
      momentseek config set search.explain yes
    """
    value = _parse_value(context, key, values)
    settings = dict(_checked_settings(context)) | {key: value}
    options.say(f"{key} = {_value_text(_without_password(value))}, in {write_config(_nest(settings))}")


@config.command("unset")
@click.argument("key")
def unset_setting(key: str) -> None:
    """Remove a key, even if its option no longer exists.

    \b
      momentseek config unset search.k
    """
    settings = dict(_flatten(read_config()))
    if key not in settings:
        raise MomentseekError(f"{config_path()}: {key} is not set; `momentseek config list` shows what is")
    del settings[key]
    options.say(f"{key} is no longer set in {write_config(_nest(settings))}")


@config.command("path")
def print_path() -> None:
    """Print the path of the settings file, even if it does not exist yet.

    \b
      $EDITOR "$(momentseek config path)"
    """
    click.echo(str(config_path()))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  momentseek completion bash >> ~/.bashrc
    zsh:   momentseek completion zsh >> ~/.zshrc
    fish:  momentseek completion fish > ~/.config/fish/completions/momentseek.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    # click asks bash for its version here, and warns if bash is older than 4.4; the script itself needs neither.
    values = found(context.find_root().command, {}, "momentseek", "_MOMENTSEEK_COMPLETE").source_vars()
    click.echo(found.source_template % values)


def _without_password(value: Any) -> Any:
    """Return a value for display: an address without its password.

    >>> _without_password("postgresql://ann:secret@db/films"), _without_password(8080)
    ('postgresql://ann:***@db/films', 8080)
    """
    return PASSWORD.sub(r"\1***@", value) if isinstance(value, str) else value


def command_defaults(context: click.Context) -> dict[str, Any]:
    """Return the settings for the command that is about to run, in the form of click's ``default_map``."""
    if context.invoked_subcommand in (None, *WITHOUT_SETTINGS):
        return {}
    defaults = {}
    for key, value in _flatten(read_config()):
        if key == LIBRARY_KEY:
            continue
        words = _words(context, key)
        if words[0] not in _commands(context):
            _refuse(context, key)
        if words[0] == context.invoked_subcommand:
            option = find_option(context, key)
            _check_value(context, key, option, value)
            defaults[".".join((*words[:-1], str(option.name)))] = value
    return _nest(defaults)


def find_option(context: click.Context, key: str) -> click.Option:
    """Return the option for a key such as ``search.k`` or ``ocr.run.every``."""
    *path, name = _words(context, key)
    command = context.find_root().command if path and path[0] in _commands(context) else None
    for word in path:
        command = command.get_command(context, word) if isinstance(command, click.Group) else None
    if command is None:
        _refuse(context, key)
    known = _settable_options(command)
    if name == LIBRARY_KEY:
        raise MomentseekError(f"{config_path()}: {key} is not a setting; set library for all commands")
    if name in NOT_KEPT:
        raise MomentseekError(f"{config_path()}: {key} cannot be a setting; give --{name} when it is wanted")
    if name not in known:
        below = [one for one, _ in _settings_of(context, command, ".".join(path))]  # of a group: those of its commands
        _refuse(context, key, [".".join((*path, one)) for one in known] or below)
    return known[name]


def _words(context: click.Context, key: str) -> list[str]:
    """Split a key into commands and option, replacing a command's former name by the current words."""
    first, *rest = key.split(".")
    if len(rest) == 1 and first in FORMER_OWNERS:
        return [*FORMER_OWNERS[first], *rest]
    group = context.find_root().command
    return [*(group.aliases.get(first, (first,)) if isinstance(group, LazyGroup) else (first,)), *rest]


def _commands(context: click.Context) -> list[str]:
    group = context.find_root().command
    assert isinstance(group, click.Group)
    return [name for name in group.list_commands(context) if name not in WITHOUT_SETTINGS]


def _settable_options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that can be settings, by their long names (also former ones) without dashes."""
    found: dict[str, click.Option] = {}
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            longest = max(option.opts, key=len)
            found |= {name.lstrip("-"): option for name in (longest, *option_names(option)[len(option.opts) :])}
    return {name: option for name, option in found.items() if name not in NOT_KEPT}


def _parse_value(context: click.Context, key: str, words: tuple[str, ...]) -> Any:
    """Parse ``words`` as the value of a key, as written to the file; refuse what the flag would refuse."""
    if key == LIBRARY_KEY:
        if len(words) != 1 or not words[0]:
            raise MomentseekError("library takes one name or path")
        return words[0]
    option = find_option(context, key)
    if option.multiple:
        value: Any = list(words)
    elif len(words) != 1:
        raise MomentseekError(f"{key} takes one value, not {len(words)}; quote it if it has spaces")
    elif option.is_flag:
        try:
            value = click.BOOL.convert(words[0], None, None)
        except click.BadParameter:
            raise MomentseekError(f"{key} is a switch; write yes or no, not {words[0]!r}") from None
    else:
        value = words[0]
    converted = _check_value(context, key, option, value)
    return converted if isinstance(converted, int | float) else value


def _check_value(context: click.Context, key: str, option: click.Option, value: Any) -> Any:
    """Return the value as its option converts it; refuse a value that the option does not accept."""
    if isinstance(value, list) != option.multiple or isinstance(value, bool) != option.is_flag:
        what = "a list" if option.multiple else "true or false" if option.is_flag else "one value"
        raise MomentseekError(f"{config_path()}: {key} must be {what}; correct it with: momentseek config set {key} …")
    try:
        return option.type_cast_value(context, value)
    except click.BadParameter as e:
        raise MomentseekError(f"{config_path()}: {key}: {e.message.rstrip('.')}") from None


def _refuse(context: click.Context, key: str, known: Sequence[str] = ()) -> NoReturn:
    rest = key[len(key.partition(".")[0]) :]
    known = known or [LIBRARY_KEY, *(f"{name}{rest or '.…'}" for name in _commands(context))]
    hint = did_you_mean(key, [one for one in known if one != key], "`momentseek config list --all` shows what there is")
    raise MomentseekError(f"{config_path()}: there is no setting {key!r}; {hint}")


def _checked_settings(context: click.Context) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of the settings file; refuse a key that belongs to no option."""
    for key, value in _flatten(read_config()):
        if key != LIBRARY_KEY:
            find_option(context, key)
        yield key, value


def _every_setting(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield every key that can be set, with its help text."""
    yield LIBRARY_KEY, "Library that all commands use: a name, or a path that contains a slash."
    root = context.find_root().command
    assert isinstance(root, click.Group)
    for name in _commands(context):
        yield from _settings_of(context, root.get_command(context, name), name)


def _settings_of(context: click.Context, command: click.Command | None, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            yield from _settings_of(context, command.get_command(context, one), f"{name}.{one}")
    if command is not None and (not isinstance(command, click.Group) or command.invoke_without_command):
        for key, option in _settable_options(command).items():
            if f"--{key}" in option.opts or f"-{key}" in option.opts:
                yield f"{name}.{key}", option.help or ""


def _flatten(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables by dotted keys.

    >>> dict(_flatten({"library": "films", "ocr": {"run": {"every": 1.0}}}))
    {'library': 'films', 'ocr.run.every': 1.0}
    """
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _nest(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested tables."""
    whole: dict[str, Any] = {}
    for key, value in settings.items():
        *tables, name = key.split(".")
        table = whole
        for one in tables:
            table = table.setdefault(one, {})
        table[name] = value
    return whole


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
