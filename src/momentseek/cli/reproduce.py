"""``momentseek reproduce``: compute a paper's table again, with our figures next to the printed ones."""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.reproduction.paper_table import read_table, table_names
from momentseek.benchmarks.reproduction.result import document, write_documents
from momentseek.cli import options
from momentseek.cli.cluster import run_on
from momentseek.cli.progress import TrainingLine
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.reports import text_table


def _complete_tables(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in table_names() if name.startswith(incomplete)]


@click.command()
@click.argument("table", required=False, shell_complete=_complete_tables)
@click.option("--list", "listed", is_flag=True, help="List the tables, or the rows of TABLE.")
@click.option("--data", metavar="DIR", help="Real features (a data.toml), else where to simulate.")
@click.option("--rows", metavar="ROW,ROW", help="Only these rows, with the first stages they need.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Seeds of every row.")
@click.option("--steps", type=click.IntRange(min=1), help="Steps of every row, instead of the table's.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of all rows.")
@click.option(
    "--run", "runs", multiple=True, metavar="ROW=FOLDER", help="A finished training run of a row; several are seeds."
)
@click.option(
    "--out",
    "-o",
    default="reproduction",
    show_default=True,
    metavar="DIR",
    help="The folder of all that is made.",
)
@click.option("--markdown", is_flag=True, help="Print a GitHub table.")
@click.option("--latex", is_flag=True, help="Print a booktabs table.")
@options.on_cluster
@options.as_json
@options.quiet
def command(
    table: str | None,
    listed: bool,
    rows: str | None,
    runs: tuple[str, ...],
    markdown: bool,
    latex: bool,
    on: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Train every row of a paper's TABLE over seeds, and print our figures next to the paper's.

    \b
    Which tables there are, and the rows of one:
      momentseek reproduce --list
      momentseek reproduce debiased-2 --list
    Table 2 of debiased grounding, on real features or else on simulated films:
      momentseek reproduce debiased-2 --data charades-cd
    Two rows of MVMR's Table 2, quickly:
      momentseek reproduce mvmr-2 --rows mmn,g2l --seeds 1 --steps 400
    All rows at once on a cluster, with a thread each:
      momentseek reproduce debiased-2 --data /mnt/charades-cd --out /mnt/tables --set threads=1 --on auto

    DIR/TABLE.md, .tex, .html (with figures) and .json are the table; DIR/runs and DIR/scores are shared by all tables.
    What is finished is not done again: the same command continues after an interruption, and prints the same table.
    """
    if listed or not table:
        _list_tables(table, as_json)
        return
    if markdown + latex + as_json > 1:
        raise MomentseekError("choose one of --markdown, --latex and --json")
    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.benchmarks.reproduction.session import finished_runs, reproduce_table

    result = reproduce_table(
        table,
        rows=[name.strip() for name in (rows or "").split(",") if name.strip()],
        finished=finished_runs(runs),
        progress=TrainingLine(quiet=quiet),
        announce=(lambda _: None) if quiet else options.say,
        spread=None if on is None else partial(run_on, on, quiet=quiet),
        **given,
    )
    if result is None:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    write_documents(result, Path(given["out"]))
    if not quiet:
        if find_spec("matplotlib") is None:
            options.say("note: the page has no figures; they need matplotlib: pip install 'momentseek[plots]'")
        options.say(f"wrote {Path(given['out']) / table}.md, .tex, .html and .json")
    if as_json:
        options.echo_json(result.as_json())
    else:
        click.echo(document(result, "markdown" if markdown else "latex" if latex else "text"), nl=False)


def _list_tables(table: str | None, as_json: bool) -> None:
    """Print all tables, or the rows of one."""
    if table:
        shown = [[row.name, row.label] for row in read_table(table).rows.values() if not row.hidden]
    else:
        shown = [[name, read_table(name).title] for name in table_names()]
    if as_json:
        options.echo_json(dict(shown))
    else:
        click.echo(text_table(["name", "what"], shown, align="l"))
