"""``momentseek reencode``: replace the library's vectors by those of another encoder."""

from __future__ import annotations

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.ingesting import IngestLines, conclude, ingest
from momentseek.library.location import library_folder


@click.command()
@options.library
@click.option("--encoder", metavar="SPEC", help="The new encoder: things, file:FOLDER or hub:NAME.")
@click.option("--model", type=click.Path(), metavar="FOLDER", help="A trained model (`momentseek export`).")
@options.wait
@options.quiet
@options.as_json
def command(
    library: str | None, encoder: str | None, model: str | None, wait: float, quiet: bool, as_json: bool
) -> None:
    """Encode all videos again with another encoder or a trained model.

    Searches use the old vectors until all new ones are there, and then the new ones. It can be
    stopped at any time; the same command continues. If a video's file is missing or cannot be
    read, the library keeps its old vectors and nothing is lost.

    \b
    From the offline encoder to a downloaded one:
      momentseek models get siglip2-base
      momentseek reencode --encoder hub:siglip2-base
    """

    spec = options.encoder_or_model(encoder, model)
    if spec is None:
        raise click.UsageError("no encoder is named; give --encoder SPEC or --model FOLDER")
    display = IngestLines(quiet=quiet, what="encoding again")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(
            lambda tell: opened.reencode(spec, progress=tell),
            display,
            library=library,
            as_json=as_json,
            again=["reencode", "--encoder", spec],
        )
    conclude(report, library=library, as_json=as_json, quiet=quiet)
