"""The library's words in those of the command line: where an error names a parameter, people type a flag."""

from __future__ import annotations

import re
import shlex

import click

PARAMETER = re.compile(
    r"`(?P<bare>[a-z][a-z0-9_]*)`"
    r"|(?<![^\s(])(?P<name>[a-z][a-z0-9_]*)="
    r'(?:(?P<text>"[^"]+"(?:(?:, | or |, or )"[^"]+")*)|(?P<plain>True|False|…|\d+(?:\.\d+)?))(?![\w/\]])'
)
"""A parameter in a sentence: `name`, name="text", name="one" or "other", name=True, name=12 or name=…; no path."""


def to_flags(sentence: str, command: click.Command | None = None) -> str:
    """Write the parameters that a sentence names as flags of a command (the running one if None).

    What the command has no flag for stays as it is.

    >>> from momentseek.cli.evaluate import command
    >>> to_flags('count such queries as 0 (missing="zero"), or leave out `protocol`', command)
    'count such queries as 0 (--missing zero), or leave out --protocol'
    """
    options = _options(command or click.get_current_context().command)

    def flag(match: re.Match[str]) -> str:
        option = options.get(match["bare"] or match["name"])
        if option is None:
            return match[0]
        if match["plain"] == "False" and option.secondary_opts:
            return _longest(option.secondary_opts)
        value = match["plain"] if match["plain"] not in ("True", "…") else None
        if match["text"]:
            value = re.sub('"([^"]+)"', lambda text: shlex.quote(text[1]), match["text"])
        return " ".join(filter(None, (_longest(option.opts), value)))

    return PARAMETER.sub(flag, sentence)


def _options(command: click.Command) -> dict[str, click.Option]:
    """Python name → option: what follows the dashes, or the name under which the command receives it."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    received = {option.name: option for option in options if option.name}
    return received | {name.lstrip("-").replace("-", "_"): option for option in options for name in option.opts}


def _longest(names: list[str]) -> str:
    return max(names, key=len)
