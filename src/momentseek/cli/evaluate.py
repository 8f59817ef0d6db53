"""``momentseek evaluate``: score a run against judgements."""

from __future__ import annotations

from pathlib import Path

import click

from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import write_bytes
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.official import render
from momentseek.measuring.report import as_json as to_json
from momentseek.measuring.report import as_text, intervals
from momentseek.measuring.report import per_query as to_lines
from momentseek.measuring.result import Missing


@click.command()
@click.argument("run", metavar="RUN", type=click.Path())
@options.truth
@options.protocol
@options.measures
@options.missing
@click.option("--by", metavar="FIELD", help="Break down by a field of the truth's queries (TVR: type), or by length.")
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap intervals.")
@click.option(
    "--per-query",
    metavar="FILE",
    type=click.Path(),
    help="Also write every query's values, to .csv or .jsonl (or .gz of them).",
)
@options.videos
@options.invalid
@options.as_json
@click.option("--official", is_flag=True, help="Print exactly what the protocol's official evaluator prints.")
def command(
    run: str,
    truth: str,
    protocol: str | None,
    measures: tuple[str, ...],
    missing: str,
    by: str | None,
    ci: bool,
    per_query: str | None,
    videos: str | None,
    invalid: str | None,
    as_json: bool,
    official: bool,
) -> None:
    """Score RUN, the ranked moments (or the captions) of a system, against ground truth.

    \b
    TVR-Ranking, as its evaluator computes it:
      momentseek evaluate predictions.json --truth test.json --protocol tvr-ranking
    Any measures, with intervals, by query type:
      momentseek evaluate run.jsonl -t val.jsonl -m 'R@{1,5}[IoU>={0.5,0.7}]' -m AxIoU@5 --ci --by type
    TVR's and QVHighlights' official metrics files:
      momentseek evaluate submission.json --truth tvr_val.jsonl --official
    Captions of moments against what people wrote of them:
      momentseek evaluate captions.jsonl --truth tvc_val_release.jsonl --protocol tvc

    Files may be gzipped. Without -m the protocol's measures are computed. Values are means over all judged queries;
    a query the run leaves out is an error unless --missing says otherwise, because leaving it out silently would
    raise the mean. --json has unrounded values between 0 and 1. --official follows the truth's own protocol and
    keeps impossible times, as the official tools do.
    """
    from typing import cast

    if official and (measures or by or ci or as_json or per_query):
        raise MomentseekError("--official prints a fixed report; leave out -m, --by, --ci, --per-query and --json")
    ending = Path((per_query or "values.csv").removesuffix(".gz")).suffix
    if ending not in (".csv", ".jsonl"):
        raise MomentseekError(f"{per_query}: per-query values are written as .csv or .jsonl (or .gz of them)")
    options.check_targets([run, truth, videos], [per_query], force=True)
    rules = PROTOCOLS[protocol or "paper"]  # names are checked before large files are read
    parse_all(measures, rules.options)
    judgements, runs = options.read(run, truth, videos, invalid or ("keep" if official else "error"))
    if official:
        for table in (judgements, *(runs if isinstance(runs, tuple) else (runs,))):
            for finding in table.findings:
                options.say(f"note: {table.source}: {finding}")
        name = protocol or options.home_protocol(judgements)
        text = render(name, runs, judgements, cast(Missing, missing))
        if missing != "error":
            gone = evaluate(runs, judgements, protocol=name, missing=cast(Missing, missing)).missing
            what = "judged queries without predictions" if isinstance(runs, tuple) else "moments without a caption"
            options.say(f"note: {len(gone):,} {what} ({missing})")
        click.echo(text, nl=False)
        return
    result = evaluate(runs, judgements, measures, protocol=rules.name, missing=cast(Missing, missing))
    ends = intervals(result, by) if ci else None
    if by:
        result.by(by)  # refuse an unknown field before anything is written
    if per_query:
        write_bytes(per_query, to_lines(result, ending))
    if as_json:
        import json

        click.echo(json.dumps(to_json(result, by, ends), indent=2, ensure_ascii=False))
        return
    click.echo(as_text(result, by, ends))
    for note in result.notes:
        options.say(f"note: {note}")
