"""``momentseek data label-studio``: write annotation tasks, and read the annotators' labels back."""

from __future__ import annotations

import click

from momentseek.cli import options


@click.group()
def command() -> None:
    """Have query–moment pairs judged in Label Studio (labelstud.io), the tool TVR-Ranking used.

    \b
      momentseek data label-studio write first.jsonl --base-url https://example.org/videos --out tasks.json
      momentseek data label-studio read export.json --out labels.csv

    `write` makes the tasks to import and the labelling page to paste into the project's settings; `read` turns the
    project's JSON export into the labels that `momentseek data consensus` takes.
    """


@command.command()
@click.argument("candidates", metavar="CANDIDATES")
@click.option("--out", required=True, metavar="FILE", help="The tasks to import (JSON).")
@click.option("--config", metavar="FILE", help="The labelling page (XML). Default: beside OUT, as OUT.xml.")
@click.option("--base-url", required=True, metavar="URL", help="Where the videos are: URL/VIDEO.mp4.")
@click.option("--suffix", default=".mp4", show_default=True, help="What follows a video's name in its address.")
@click.option(
    "--disagreed",
    metavar="LABELS",
    help="Only pairs whose two labels in this file differ by more than 1: they need two more annotators.",
)
def write(candidates: str, out: str, config: str | None, base_url: str, suffix: str, disagreed: str | None) -> None:
    """Write one task per pair of CANDIDATES: query, video at the moment, and the five-level guideline.

    CANDIDATES is what `momentseek data candidates` wrote, or any truth file.
    """
    import json
    from pathlib import Path

    from momentseek.construct.candidate_files import read_candidates
    from momentseek.construct.label_studio import labelling_page, tasks
    from momentseek.errors import MomentseekError
    from momentseek.formats import write_bytes

    pairs = read_candidates(candidates)
    if disagreed:
        from momentseek.construct.consensus import consensus
        from momentseek.construct.labels import read_labels

        labels = read_labels(disagreed)
        found = consensus(labels, incomplete="drop")
        split = found.complete & ~found.kept & (labels.counts == 2)
        wanted = {labels.pair_ids[i] for i in split.nonzero()[0].tolist()}
        pairs = [c for c in pairs if c.pair_id in wanted]
    page = config or str(Path(out.removesuffix(".gz")).with_suffix(".xml"))
    if page == out:
        raise MomentseekError(f"{out}: the tasks and the labelling page need a file each; call the tasks .json")
    write_bytes(out, json.dumps(tasks(pairs, base_url, suffix), ensure_ascii=False, indent=1).encode())
    write_bytes(page, labelling_page().encode())
    options.say(f"wrote {out}: {len(pairs):,} tasks of {len({c.query_id for c in pairs}):,} queries")
    options.say(f"wrote {page}: the labelling page")


@command.command()
@click.argument("exports", metavar="EXPORT...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="FILE", help="The labels: CSV with pair_id, worker, relevance.")
@options.as_json
def read(exports: tuple[str, ...], out: str, as_json: bool) -> None:
    """Turn Label Studio's JSON EXPORTs into labels, and say what was skipped or is still missing.

    Several exports (say, of the first two annotators and of the two asked later) are joined in the order given.
    """
    import json

    from momentseek.construct.label_studio import read_export
    from momentseek.construct.labels import write_labels
    from momentseek.errors import MomentseekError
    from momentseek.formats import write_bytes
    from momentseek.formats.document import open_document

    found = [read_export(open_document(path).json, path) for path in exports]
    labels = [label for part in found for label in part.labels]
    if not labels:
        raise MomentseekError(f"{', '.join(exports)}: nobody has judged anything yet; export again when they have")
    write_bytes(out, write_labels(labels))
    judged = {pair for pair, _, _ in labels}
    missing = [pair for part in found for pair in part.missing if pair not in judged]
    summary = {
        "tasks": sum(part.tasks for part in found),
        "labels": len(labels),
        "pairs": len(judged),
        "workers": len({worker for _, worker, _ in labels}),
        "missing": missing,
        "cancelled": sum(part.cancelled for part in found),
        "empty": sum(part.empty for part in found),
        "replaced": sum(part.replaced for part in found),
    }
    if as_json:
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        click.echo(f"{summary['labels']:,} labels of {summary['pairs']:,} pairs by {summary['workers']} workers")
        for count, what in (
            (len(missing), f"pairs not judged yet ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''})"),
            (summary["cancelled"], "annotations were skipped by their annotator"),
            (summary["empty"], "annotations have no answer"),
            (summary["replaced"], "annotations were replaced by a later one of the same person"),
        ):
            if count:
                click.echo(f"{count:,} {what}")
    options.say(f"wrote {out}")
