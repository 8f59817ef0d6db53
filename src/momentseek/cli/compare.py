"""``momentseek compare``: several runs against one truth, with significance."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.table import Policy
from momentseek.measuring.compare import compare, largest_differences
from momentseek.measuring.comparison import render, render_differences
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_answers, read_corpus, read_standard
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.result import Missing


@click.command()
@click.argument("runs", metavar="RUN RUN...", nargs=-1, type=click.Path())
@options.truth
@options.protocol
@options.measures
@options.missing
@click.option(
    "--test",
    type=click.Choice(["randomisation", "t", "tukey"]),
    default="randomisation",
    show_default=True,
    help="Fisher's paired randomisation test, Student's paired t-test, or randomised Tukey HSD for all runs at once.",
)
@click.option(
    "--correction",
    type=click.Choice(["holm", "none"]),
    default="holm",
    show_default=True,
    help="For the number of pairs of runs, within each measure; tukey has its own.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="What p must not exceed for a difference to be called significant.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For the random resamples.")
@click.option(
    "--per-query",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=10,
    metavar="[N]",
    help="Also list the N (10) queries on which the first two runs differ most, by the first measure.",
)
@options.videos
@options.invalid
@click.option("--markdown", is_flag=True, help="Print a GitHub table, the best in bold.")
@click.option("--latex", is_flag=True, help="Print a booktabs table, the best in bold.")
@options.as_json
def command(
    runs: tuple[str, ...],
    truth: str,
    protocol: str | None,
    measures: tuple[str, ...],
    missing: str,
    test: str,
    correction: str,
    alpha: float,
    seed: int,
    per_query: int | None,
    videos: str | None,
    invalid: str | None,
    markdown: bool,
    latex: bool,
    as_json: bool,
) -> None:
    """Compare two or more RUNs query by query: who is better, by how much, and whether chance could explain it.

    \b
    Two systems on TVR-Ranking, and the queries on which they differ most:
      momentseek compare ours.json theirs.json --truth test.json -m 'NDCG@20[IoU>={0.3,0.5}]' --per-query
    Four systems, corrected for comparing all of them, as a table for a paper:
      momentseek compare a.json b.json c.json d.json -t test.json --test tukey --latex

    RUNs are ranked moments, or captions of moments. They are called a, b, c, … in the order given. A raised letter
    after a mean says that the run is significantly better than the run of that letter.
    """
    from itertools import chain
    from string import ascii_lowercase
    from typing import cast

    if len(runs) < 2:
        raise MomentseekError("a comparison needs at least two runs: momentseek compare RUN RUN… --truth FILE")
    if len(runs) > len(ascii_lowercase):
        raise MomentseekError(
            f"{len(runs)} runs are too many: they are called by letter, so at most 26 can be compared"
        )
    if markdown + latex + as_json > 1:
        raise MomentseekError("choose one of --markdown, --latex and --json")
    rules = PROTOCOLS[protocol or "paper"]  # names are checked before large files are read
    parse_all(measures, rules.options)
    policy = cast(Policy, invalid or "error")
    corpus = read_corpus(videos) if videos else None
    answers = (read_answers(path, corpus=corpus, invalid=policy) for path in runs)
    first = next(answers)
    judgements = read_standard(truth, first, corpus=corpus, invalid=policy)
    evaluations = [
        evaluate(answered, judgements, measures, protocol=rules.name, missing=cast(Missing, missing), label=label)
        for answered, label in zip(chain([first], answers), options.short_labels(runs), strict=True)
    ]
    comparison = compare(evaluations, test=test, correction=correction, alpha=alpha, seed=seed)
    measure = comparison.names[0]
    apart = largest_differences(evaluations[0], evaluations[1], measure, per_query) if per_query else []
    if as_json:
        import json
        from dataclasses import asdict

        result = comparison.as_dict()
        if per_query:
            result["largest_differences"] = {"measure": measure, "queries": [asdict(row) for row in apart]}
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    style = "markdown" if markdown else "latex" if latex else "text"
    click.echo(render(comparison, style))
    if per_query:
        title = comparison.title(measure)
        click.echo("\n" + render_differences(apart, title, comparison.runs, comparison.percent, style))
    for note in dict.fromkeys(note for evaluation in evaluations for note in evaluation.notes):
        options.say(f"note: {note}")
