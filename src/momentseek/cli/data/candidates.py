"""``momentseek data candidates``: choose the moments that annotators judge for each query."""

from __future__ import annotations

import click

from momentseek.benchmarks.datasets.annotation.candidates import (
    drop_same_wording,
    first_batch,
    rank_candidates,
    require_unique_pairs,
    second_batch,
    write_candidates,
)
from momentseek.benchmarks.datasets.annotation.labels import read_pairs
from momentseek.benchmarks.datasets.common import Decision, as_json_lines, tally, top_similar
from momentseek.cli import options
from momentseek.cli.data import refuse_without
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.measuring.formats import read_truth, write_all
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.encoders.text_cache import encode_cached


@click.command()
@click.argument("queries", metavar="QUERIES")
@click.argument("captions", metavar="CAPTIONS")
@click.option("--out", required=True, metavar="FILE", help="Write the candidates here (JSON Lines; .gz too).")
@click.option("--batch", type=click.IntRange(min=1), default=20, show_default=True, help="Candidates per batch.")
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="The text encoder that compares texts, or file:VECTORS.",
)
@click.option(
    "--labels", metavar="PAIRS", help="The judged first batch (from `data consensus`): write the second batch."
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="With --labels: how many of the first batch's last candidates decide.",
)
@click.option(
    "--still-relevant",
    type=click.FloatRange(0, 4),
    default=2.0,
    show_default=True,
    metavar="LEVEL",
    help="With --labels: write a second batch if the mean level of the last ones is at least this.",
)
@click.option(
    "--identical",
    type=click.Choice(["once", "each"]),
    default="once",
    show_default=True,
    help="Queries with the same words: judge the first one only, or each.",
)
@click.option("--report", metavar="FILE", help="Write the decision about every query, one JSON object per line.")
@options.force
@options.as_json
def command(
    queries: str,
    captions: str,
    out: str,
    batch: int,
    encoder: str,
    labels: str | None,
    last: int,
    still_relevant: float,
    identical: str,
    report: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Find, for each of QUERIES, the moments of CAPTIONS whose captions are most similar to it.

    Both are truth files in any format; a moment's caption is its query's text. Candidates come in batches of 20. Once
    the first batch is judged, --labels adds the second where the last 5 of the first are still relevant.

    \b
    The first batch, then (when it is judged) the second:
      momentseek data candidates queries.jsonl captions.jsonl --out first.jsonl
      momentseek data candidates queries.jsonl captions.jsonl --labels pairs.csv --out second.jsonl

    OUT is a predictions file that also has each pair's id, rank, batch and caption; `momentseek data label-studio
    write` turns it into annotation tasks.
    """
    import json

    options.check_targets([queries, captions, labels], [out, report], force)
    if not labels:
        refuse_without("without --labels", last="--last", still_relevant="--still-relevant")
    asked, known = (read_truth(path, invalid="keep") for path in (queries, captions))
    for table in (asked, known):
        if not table.queries or not any(table.queries):
            raise MomentseekError(f"{table.source}: its queries have no words, so there is nothing to compare")
    levels = read_pairs(labels) if labels else None
    decisions: list[Decision] = []
    if identical == "once":
        asked, decisions = drop_same_wording(asked)
    model = text_encoder(encoder)
    with progress_bars(f"encoding with {model.name}") as progress:
        asked_vectors, known_vectors = (
            encode_cached(model, list(t.queries or ()), progress=progress) for t in (asked, known)
        )
    lists = rank_candidates(
        asked,
        known,
        lambda k: top_similar(asked_vectors, known_vectors[known.row_query], k),
        2 * batch if labels else batch,
    )
    if levels is None:
        chosen = first_batch(lists, batch)
        decisions += [Decision(c[0].query_id, "asked", "first batch", {"candidates": len(c)}) for c in lists if c]
    else:
        chosen, more = second_batch(lists, levels, size=batch, last=last, threshold=still_relevant)
        decisions += more
    require_unique_pairs(chosen, out)
    write_all({out: write_candidates(chosen), **({report: as_json_lines(decisions)} if report else {})})
    counts = tally(decisions)
    if as_json:
        summary = {
            "queries": len({c.query_id for c in chosen}),
            "pairs": len(chosen),
            "captions": len(known.video),
            "batch": batch,
            "encoder": model.name,
            "decisions": counts,
        }
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        for outcome, reasons in counts.items():
            for reason, n in reasons.items():
                click.echo(f"{count(n, 'query', 'queries')} {outcome}: {reason}")
    if levels is not None:
        judged = max(c.rank for pairs in lists for c in pairs if c.pair_id in levels)
        if judged < min(batch, max(map(len, lists))):
            options.say(
                f"note: no pair beyond rank {judged} has a level; if the first batch was smaller than {batch}, give "
                "its size (--batch)"
            )
    options.say(f"wrote {out}: {count(len(chosen), 'pair')}, compared by {model.name}")
    if report:
        options.say(f"wrote {report}")
