"""``momentseek data pseudo-train``: make a training set from caption similarity."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from momentseek.benchmarks.datasets.common import as_json_lines
from momentseek.benchmarks.datasets.pseudo_training import as_json as to_json
from momentseek.benchmarks.datasets.pseudo_training import (
    collect_moments,
    find_pseudo_training,
    read_queries_by_id,
    read_query_texts,
    select_queries,
    summary,
)
from momentseek.cli import options
from momentseek.cli.options import new_folders
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import read_corpus, read_truth, write_all
from momentseek.recognition.encoders.registry import text_encoder

if TYPE_CHECKING:
    from momentseek.core.moments.judgements import Judgements
    from momentseek.core.moments.table import Policy


@click.command()
@click.argument("annotations", nargs=-1, required=True, metavar="ANNOTATIONS...")
@click.option("--out", required=True, metavar="DIR", help="Folder for train_top01.json, train_top20.json, ….")
@click.option("--n", "lengths", default="1,20,40", show_default=True, metavar="N,…", help="Moments per query.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="FILE",
    help="Validation or test queries, which must not be trained on; repeatable.",
)
@click.option("--queries", metavar="FILE", help="Other words for the same query ids, such as imprecise ones.")
@click.option("--where", metavar="FIELD=VALUE", help="Only queries with this label, such as type=v (TVR: by vision).")
@click.option("--encoder", default="minilm", show_default=True, metavar="NAME", help="Text encoder, or file:VECTORS.")
@options.videos
@options.invalid
@click.option("--report", metavar="FILE", help="Write every query's decision, as JSON Lines.")
@options.force
@options.as_json
def command(
    annotations: tuple[str, ...],
    out: str,
    lengths: str,
    exclude: tuple[str, ...],
    queries: str | None,
    where: str | None,
    encoder: str,
    videos: str | None,
    invalid: str | None,
    report: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Pair every query with the N moments whose captions are most similar to it.

    The moments of all ANNOTATIONS can be chosen; a moment's caption is the sentence written for it. Queries
    whose text is also in an --exclude file (ignoring case, punctuation and spacing) are left out.

    \b
    As TVR-Ranking does, for descriptions of what is seen:
      momentseek data pseudo-train tvr_train.jsonl --where type=v --exclude val.json --exclude test.json --out pseudo/
    """

    sizes = _sizes(lengths)
    folder = Path(out)
    vectors = encoder.removeprefix("file:") if encoder.startswith("file:") else None
    inputs = [*annotations, *exclude, queries, videos, vectors]
    with new_folders(out):
        options.check_targets(inputs, [*(str(folder / name(n)) for n in sizes), report], force)
        corpus = read_corpus(videos) if videos else None
        policy = cast("Policy", invalid or "error")
        truths: Sequence[Judgements] = [read_truth(path, corpus=corpus, invalid=policy) for path in annotations]
        collection = collect_moments([select_queries(truth, where) for truth in truths] if where else truths)
        model = text_encoder(encoder)
        with progress_bars(f"encoding with {model.name}") as progress:
            training = find_pseudo_training(
                collection,
                model,
                max(sizes),
                queries=read_queries_by_id(queries) if queries else None,
                exclude=[text for path in exclude for text in read_query_texts(path)],
                progress=progress,
            )
        files: dict[str | PathLike[str], bytes] = {folder / name(n): to_json(training, n) for n in sizes}
        if report:
            files[Path(report)] = as_json_lines(training.decisions)
        write_all(files)
    result = summary(training, sizes)
    for truth in truths:
        for finding in truth.findings:
            options.say(f"note: {truth.source}: {finding}")
    if collection.size < max(sizes):
        there = "is" if collection.size == 1 else "are"
        options.say(f"note: there {there} only {count(collection.size, 'moment')}, so no query has more")
    if as_json:
        import json

        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    _print_summary(result, folder, sizes)


def name(n: int) -> str:
    """The file of N moments per query, as TVR-Ranking calls it."""
    return f"train_top{n:02d}.json"


def _sizes(lengths: str) -> list[int]:

    parts = [part.strip() for part in lengths.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise MomentseekError(f"--n is {lengths!r}; give numbers of moments such as 1,20,40")
    return sorted(set(map(int, parts)))


def _print_summary(result: dict[str, Any], folder: Path, sizes: list[int]) -> None:

    rows = [
        [
            name(n),
            f"{entry['pairs']:,}",
            f"{entry['moments']:,}",
            f"{entry['videos']:,}",
            f"{entry['hours']:,.2f}",
            f"{entry['similarity']:.4f}",
            f"{entry['last_similarity']:.4f}",
        ]
        for n in sizes
        for entry in [result["lists"][str(n)]]
    ]
    click.echo(text_table(["file", "pairs", "moments", "videos", "hours", "mean sim.", "last sim."], rows))
    for reason, n in result["decisions"].get("dropped", {}).items():
        options.say(f"left out: {count(n, 'query', 'queries')}, {reason}")
    options.say(
        f"{count(result['queries'], 'query', 'queries')}, {count(result['moments_to_choose_from'], 'moment')} to "
        f"choose from; the own moment is first for {result['own_moment_first']:.1%}. Written to {folder}."
    )
