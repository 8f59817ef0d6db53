"""Command groups that import commands lazily, options with former names, and parameters as flags."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from momentseek.core import plugins
from momentseek.core.errors import any_of, python_parameter
from momentseek.core.registry import did_you_mean

Sections = Mapping[str, Mapping[str, tuple[str, str]]]
"""Title → command → its location (``module:name`` below the package) and its line of help."""


class LazyGroup(click.Group):
    """A group of commands in sections; ``aliases`` maps former names to the current words."""

    def __init__(
        self,
        *args: Any,
        package: str,
        sections: Sections,
        aliases: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.package = package
        self.sections = sections
        self.aliases = aliases or {}
        self.targets = {name: target for some in sections.values() for name, (target, _) in some.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their sections."""
        return list(self.targets)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command from its module and return it."""
        if name not in self.targets:
            return None
        module, _, attribute = self.targets[name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"{self.package}.{module}"), attribute)
        prepare_command(command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after replacing a former name by the current words."""
        if args and args[0] in self.aliases:
            current = self.aliases[args[0]]
            report_rename(ctx, args[0], " ".join(current))
            args = [*current, *args[1:]]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; the error for a mistyped name suggests the nearest one."""
        if args and args[0] not in self.targets and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.targets, "")
            ctx.fail(f"there is no command {args[0]!r}. {hint.capitalize()}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without importing them."""
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, about) for name, (_, about) in commands.items()])


def load_plugins(context: click.Context, _: click.Parameter, files: tuple[str, ...]) -> None:
    """Import the files that ``--plugin`` names, before any other option is parsed."""
    for file in files:
        plugins.use_file(file)
    if files:
        context.meta["plugin"] = files


METAVARS = {"integer": "N", "integer range": "N", "float": "X", "float range": "X", "directory": "DIR"}
"""What the help calls the value of an option that names no metavar, by the name of its type."""

plugin_option = click.option(
    "--plugin",
    multiple=True,
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=load_plugins,
    help="Load a Python FILE that adds models, measures, formats, … (docs/plugins.md); repeatable.",
)


def prepare_command(command: click.Command) -> None:
    """Add ``--plugin`` to a command, or to all commands of a group, and name the values of options in its help."""
    if isinstance(command, click.Group) and not isinstance(command, LazyGroup):
        for one in command.commands.values():
            prepare_command(one)
    elif not any(option.name == "plugin" for option in command.params):
        plugin_option(command)
    for option in command.params:
        if isinstance(option, click.Option) and not option.is_flag and option.metavar is None:
            text = option.type.name == "text"
            option.metavar = str(option.name).upper() if text else METAVARS.get(option.type.name)


def report_rename(context: click.Context, former: str, current: str) -> None:
    """Print on stderr the current name of a renamed command or flag, once per run of the command line."""
    reported = context.meta.setdefault("momentseek.renamed", set())
    if former in reported or context.resilient_parsing:  # a shell completes a word
        return
    reported.add(former)
    click.echo(f"momentseek: `{former}` is now `{current}`; the former name still works for the time being", err=True)


class RenamedOption(click.Option):
    """An option with former names (``former``): they work, are not shown, and print the current name when used."""

    def __init__(self, *args: Any, former: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.former = list(former)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser accept the former names too."""
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        parser.add_option(self, self.former, dest=self.name, action=action, nargs=self.nargs)
        for name in self.former:
            option = parser._long_opt[name]
            option.process = self._reporting(option.process, ctx, name)

    def _reporting(self, process: Callable[..., None], ctx: click.Context, former: str) -> Callable[..., None]:
        def report_and_process(*args: Any) -> None:
            report_rename(ctx, former, max(self.opts, key=len))
            process(*args)

        return report_and_process


def option_names(option: click.Option) -> list[str]:
    """All names of an option, former ones last."""
    return [*option.opts, *getattr(option, "former", ())]


def flag_parameter(name: str, values: tuple[object, ...]) -> str:
    """Write a parameter in a message as a flag of the running command, or as in Python if it has no such flag."""
    context = click.get_current_context(silent=True)
    option = None if context is None else _find_option(context.command, name)
    if option is None:
        return python_parameter(name, values)
    if values == (False,) and option.secondary_opts:
        return max(option.secondary_opts, key=len)
    texts = [shlex.quote(str(value)) for value in values if value is not True and value is not ...]
    flag = max(option.opts, key=len)
    return f"{flag} {any_of(texts)}" if texts else flag


def _find_option(command: click.Command, name: str) -> click.Option | None:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    for option in options:
        if name in (flag.lstrip("-").replace("-", "_") for flag in option_names(option)):
            return option
    return next((option for option in options if option.name == name), None)
