"""``momentseek explain``: show why a trained model answers a query as it does."""

from __future__ import annotations

import json
from pathlib import Path

import click

from momentseek.cli import options
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.models import require_training

FIGURES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path())
@click.option("--data", required=True, type=click.Path(), metavar="DIR", help="A data folder: one with a data.toml.")
@click.option("--query", required=True, metavar="ID|TEXT", help="A query of the split, or any text (see below).")
@click.option("--split", default="val", show_default=True, metavar="NAME", help="The split to search.")
@click.option("--top", "-k", type=click.IntRange(1, 20), default=3, show_default=True, help="How many moments to show.")
@click.option("--out", "-o", type=click.Path(), metavar="FILE", help="A figure (.png, .svg, .pdf), or numbers (.json).")
@options.force
@options.as_json
def command(
    checkpoint: str, data: str, query: str, split: str, top: int, out: str | None, force: bool, as_json: bool
) -> None:
    """Show what a model (xml, reloclnet) sees in a query and in the videos it chooses.

    Shows the weight of each word for pictures and for subtitles; for each of the best moments, the similarity of the
    query to the video's clips, the responses of the learned start and end filters, and the moment next to the truth;
    and the right video, if it was not found. A text that is not a query of the split can be used if the data say which
    encoder made the queries' features (`momentseek data features`).

    \b
    A figure, and the numbers in it:
      momentseek explain runs/xml --data simulation --split val --query 4100 --out why.png
      momentseek explain runs/xml --data films-data --query 'the flower on screen' --json
    """
    if out is None and not as_json:
        raise MomentseekError("there is nowhere to draw; name a file (--out why.png), or ask for the numbers (--json)")
    kind = Path(out).suffix.lower() if out is not None else ".json"
    if kind not in (*FIGURES, ".json"):
        raise MomentseekError(f"{out}: its ending names no known format; use one of {', '.join(FIGURES)}, .json")
    require_training()
    if kind in FIGURES:
        optional_module("matplotlib", "plots")
    options.check_targets([checkpoint], [out], force)
    from momentseek.models.explain.explanation import explain_query
    from momentseek.models.explain.figure import save

    found = explain_query(checkpoint, data, query, split=split, k=top)
    text = json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n"
    if out is not None and kind == ".json":
        write_bytes(Path(out), text.encode())
    elif out is not None:
        save(found, Path(out))
    if as_json:
        click.echo(text, nl=False)
    else:
        options.say(f"wrote {out}")
