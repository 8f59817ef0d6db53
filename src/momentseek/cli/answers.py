"""``momentseek answers``: read what language models answer in prose."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from momentseek.cli import options
from momentseek.measuring.answers.reading import report_answers
from momentseek.measuring.answers.times import UNITS
from momentseek.measuring.formats import read_corpus, write_bytes
from momentseek.measuring.formats.files import writer_for
from momentseek.measuring.formats.prose_answers import ProseAnswers, read_prose
from momentseek.measuring.formats.registry import Reading


@click.command()
@click.argument("source", metavar="ANSWERS")
@click.option("--out", metavar="FILE", help="Write the moments as predictions.")
@click.option("--to", metavar="FORMAT", help="Write FORMAT. Default: by the ending of --out, .jsonl or .parquet.")
@click.option(
    "--units",
    type=click.Choice(UNITS),
    help="What a number without a unit means, where the file does not say. Default: seconds.",
)
@click.option("--fps", type=click.FloatRange(0, min_open=True), help="Frames per second, where the file does not say.")
@click.option("--table", is_flag=True, help="Print every answer with what it means.")
@options.videos
@options.force
@options.as_json
def answers(
    source: str,
    out: str | None,
    to: str | None,
    table: bool,
    videos: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Read the answers of a language model in prose, and count those that name no moment by reason.

    ANSWERS is JSON Lines with query_id, video, answer and, where known, duration, fps and units. Such a file can be
    given to evaluate and compare as it is.

    \b
    What the answers hold, and what each of them means:
      momentseek answers answers.jsonl --table
    Those of a model that counts in hundredths of the video, as predictions:
      momentseek answers vtimellm.jsonl --units hundredths --videos durations.json --out run.jsonl
    """
    options.check_targets([source, videos], [out], force)
    read = read_prose(source, Reading(corpus=read_corpus(videos) if videos else None), **given)
    report = report_answers(read.texts, read.parsed, source)
    if out:
        write_bytes(out, writer_for(to, out, "run").to_bytes((read.to_run(),)))
    if as_json:
        options.echo_json(asdict(report) | ({"table": _rows(read)} if table else {}))
        return
    if table:
        rows = [[row["query_id"], row["means"], row["answer"]] for row in _rows(read)]
        options.echo_table(["query", "means", "answer"], rows, align="l")
        click.echo()
    click.echo(report.as_text())
    if out:
        options.say(f"wrote {out}")


def _rows(read: ProseAnswers) -> list[dict[str, str]]:
    def meaning(spans: Any, reason: str) -> str:
        return ", ".join(f"{span.start:g}–{span.end:g} s" for span in spans) or reason

    rows = zip(read.query_ids, read.parsed, read.texts, strict=True)
    return [
        {"query_id": query, "means": meaning(parsed.spans, parsed.reason), "answer": " ".join(text.split())[:100]}
        for query, parsed, text in rows
    ]
