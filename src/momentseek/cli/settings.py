"""The settings file as the command line understands it: keys are commands' options, checked as flags are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import click

from momentseek.config import LIBRARY_KEY, config_path, read_config
from momentseek.errors import MomentseekError
from momentseek.registry import did_you_mean

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
