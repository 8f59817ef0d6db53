"""Command groups that load a command's module only when the command runs, and errors in the words of its flags."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Mapping
from typing import Any

import click

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean


class Verbs(click.Group):
    """A command group of verbs, each with one line of help; verb ``a-b`` is ``command`` of ``<package>.a_b``."""

    def __init__(self, *args: Any, package: str, verbs: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.package = package
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which people meet them."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command, from its own module."""
        if name not in self.verbs:
            return None
        command: click.Command = importlib.import_module(f"{self.package}.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; for a mistyped one, the error suggests the nearest."""
        if args and args[0] not in self.verbs and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.verbs.keys(), "")
            ctx.fail(f"there is no command {args[0]!r}. {hint.capitalize()}".rstrip())
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; in the errors of the library, write the parameters as the verb's flags."""
        try:
            return super().invoke(ctx)
        except MomentseekError as e:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if command is not None:
                e.args = (to_flags(str(e), command),)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.verbs.items()))


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
