"""A command group whose verbs are imported only when they run, so that help and completion are quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from momentseek.errors import MomentseekError
from momentseek.registry import did_you_mean


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
                from momentseek.cli.flags import to_flags

                e.args = (to_flags(str(e), command),)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.verbs.items()))
