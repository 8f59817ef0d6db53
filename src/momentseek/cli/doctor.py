"""``momentseek doctor``: check that everything that searching needs is installed, and say what to do if not."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import click

from momentseek.api.checkup import Item, checkup
from momentseek.cli import options
from momentseek.cli.terminal import supported_images

MARKS = {"ok": "ok", "note": "note", "failed": "FAILED"}


@click.command()
@options.as_json
@click.option("--full", is_flag=True, help="Hash every weight file again, even those that have not changed.")
def doctor(as_json: bool, full: bool) -> None:
    """Check that everything that searching needs is installed, and say what to do if not.

    \b
      momentseek doctor
      momentseek doctor --json

    Nothing is downloaded or changed. The exit code is 0 if videos can be added and searched, else 1.
    """
    items = [*checkup(full=full), _terminal()]
    failed = sum(item.state == "failed" for item in items)
    if as_json:
        click.echo(json.dumps({"usable": not failed, "items": [asdict(item) for item in items]}, indent=2))
    else:
        rows = [[item.name, MARKS[item.state], item.found] for item in items]
        options.echo_table(["what", "state", "found"], rows, align="lll")
        todo = [item for item in items if item.advice]
        if todo:
            click.echo("\nWhat to do:")
            for item in sorted(todo, key=lambda item: item.state != "failed"):
                click.echo(f"  {item.name}: {item.advice}")
        click.echo(f"\n{failed} of these must be fixed first." if failed else "\nVideos can be added and searched.")
    if failed:
        sys.exit(1)


def _terminal() -> Item:
    kind = supported_images(os.environ)
    return Item("terminal", "ok", f"shows images ({kind})" if kind else "shows no images; results are text")
