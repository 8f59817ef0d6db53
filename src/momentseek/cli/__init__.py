"""The command line: one file per verb, loaded only when it is used."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import NoReturn

import click

from momentseek import __version__
from momentseek.errors import MomentseekError

VERBS = {
    "evaluate": "Score a run against judgements.",
    "compare": "Compare runs, with significance.",
    "diagnose": "Question the measures and the data.",
    "convert": "Rewrite a file in another format.",
    "formats": "List the file formats that can be read and written.",
    "measures": "List the measures, their options and the protocols.",
    "completion": "Print the shell completion script.",
}


class Verbs(click.Group):
    """Imports a verb's module when it runs; listing needs only the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which people meet them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command, from ``momentseek.cli.<verb>``."""
        if name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"momentseek.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and suggest the nearest verb for a mistyped one."""
        import difflib

        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"there is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="momentseek", message="%(prog)s %(version)s")
def cli() -> None:
    """Natural-language search for moments in videos, and the measures to judge it.

    \b
    Score a run (the file formats are recognised):
      momentseek evaluate predictions.json --truth test.json --protocol tvr-ranking
    Compare two systems, with significance:
      momentseek compare ours.json theirs.json --truth test.json -m 'NDCG@{10,20}[IoU>=0.5]'

    `momentseek COMMAND --help` explains a command and gives examples.
    """


def main() -> NoReturn:
    """Run the command line; bad input is one sentence on stderr and exit code 2."""
    try:
        cli.main(prog_name="momentseek", standalone_mode=False)
        sys.stdout.flush()
        gc.freeze()  # the collector's last walk over what was read would take a tenth of the whole time
        sys.exit(0)
    except MomentseekError as e:
        fail(str(e), e.exit_code)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", 130)
    except BrokenPipeError:  # `momentseek … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def fail(sentence: str, code: int) -> NoReturn:
    """Say what is wrong, in one sentence, and leave."""
    click.echo(f"momentseek: {sentence}", err=True)
    sys.exit(code)
