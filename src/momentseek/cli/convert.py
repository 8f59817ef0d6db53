"""``momentseek convert``: rewrite a file in another format."""

from __future__ import annotations

from typing import cast

import click

from momentseek.cli import options
from momentseek.core.moments.table import Policy
from momentseek.measuring.formats import FORMATS, read_corpus
from momentseek.measuring.formats.convert import convert, count_words


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", metavar="FORMAT", help="What to write. Default: by OUT's ending, .jsonl, .parquet or .txt.")
@click.option("--from", "from_", metavar="FORMAT", help="What IN is, if it is not recognised as you want.")
@options.videos
@options.invalid
@click.option("--task", type=click.Choice(["VCMR", "SVMR", "VR"]), help="Which list of a TVR submission. Default: all.")
@click.option("--force", is_flag=True, help="Overwrite OUT if it is there.")
@options.as_json
def command(
    source: str,
    target: str,
    to: str | None,
    from_: str | None,
    videos: str | None,
    invalid: str | None,
    task: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Rewrite the truth, run, captions or list of videos IN as OUT.

    What OUT's format cannot carry is refused (graded relevance as TVR, …) or, where the moments
    themselves stay intact, reported as left out. OUT appears only when it is complete.

    \b
    Charades-STA for tools that read ActivityNet's form (the durations come from the second file):
      momentseek convert charades_sta_test.txt test.json --to activitynet --videos durations.json
    Predictions as compressed JSON Lines:
      momentseek convert predictions.json predictions.jsonl.gz

    `momentseek formats` lists the formats.
    """

    done = convert(
        source,
        target,
        to=to,
        format=from_,
        corpus=read_corpus(videos) if videos else None,
        invalid=cast(Policy, invalid or "error"),
        task=task,
        force=force,
    )
    if as_json:
        import json
        from dataclasses import asdict

        click.echo(json.dumps(asdict(done), indent=2, ensure_ascii=False))
        return
    sizes = {"queries": done.queries, "moments": done.moments, "captions": done.captions}
    if FORMATS[done.read_as].kind == "corpus":
        sizes = {"videos": done.moments}
    size = ", ".join(count_words(n, what) for what, n in sizes.items() if n)
    options.say(f"read {done.source}: {done.read_as}{f', {done.variant}' if done.variant else ''}; {size}")
    for finding in done.findings:
        options.say(f"  {finding}")
    options.say(f"wrote {done.target}: {done.written_as}")
    if done.lost:
        options.say(f"  not carried by {done.written_as}: {'; '.join(done.lost)}")
