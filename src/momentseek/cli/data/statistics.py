"""``momentseek data statistics``: count and check any dataset."""

from __future__ import annotations

import click

from momentseek.benchmarks.datasets.common import as_json_lines
from momentseek.benchmarks.datasets.statistics import (
    AnnotationSplit,
    as_decisions,
    as_text,
    compute_statistics,
    read_subtitles,
    run_checks,
)
from momentseek.benchmarks.datasets.statistics import as_json as to_json
from momentseek.cli import options
from momentseek.cli.options import short_labels
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.measuring.formats import read_corpus, read_truth, write_all


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.videos
@click.option("--subtitles", metavar="FILE", help="TVR's subtitles (JSON Lines): find queries copied from them.")
@click.option(
    "--min-words",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Report queries with fewer words (TVR's rule).",
)
@click.option("--report", metavar="FILE", help="Write every finding, one JSON object per line.")
@options.force
@options.as_json
def command(
    files: tuple[str, ...],
    videos: str | None,
    subtitles: str | None,
    min_words: int,
    report: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Count queries, moments, videos and words of FILEs (truths in any format), and check them for errors.

    Several files are the splits of one dataset: each has a column, a total follows, and videos that are in two of
    them are reported. Files that break the rules are read as they are; finding that is what this command is for.

    \b
    The tables of the TVR and TVR-Ranking papers for any dataset:
      momentseek data statistics train.json val.json test.json
    Charades-STA, whose durations are in another file:
      momentseek data statistics charades_sta_train.txt charades_sta_test.txt --videos durations.json
    """
    import json
    from pathlib import Path

    options.check_targets([*files, videos, subtitles], [report], force)
    seen: set[Path] = set()
    for path in map(Path, files):
        if path.resolve() in seen:
            raise MomentseekError(f"{path}: is given twice, so everything in it would count twice; name each file once")
        seen.add(path.resolve())
    corpus = read_corpus(videos) if videos else None
    names = short_labels(files)
    splits = [
        AnnotationSplit(name, read_truth(path, corpus=corpus, invalid="keep"))
        for name, path in zip(names, files, strict=True)
    ]
    said = read_subtitles(subtitles) if subtitles else None
    columns = [compute_statistics([split], split.name) for split in splits]
    if len(splits) > 1:
        columns.append(compute_statistics(splits, "total"))
    found = run_checks(splits, min_words=min_words, subtitles=said)
    text = json.dumps(to_json(columns, found), indent=2, ensure_ascii=False) if as_json else as_text(columns, found)
    if report:
        write_all({report: as_json_lines(as_decisions(found))})
    click.echo(text)
    for split in splits:
        unknown = int((split.truth.durations != split.truth.durations).sum())
        if unknown:
            which = count(unknown, "video has", "videos have")
            options.say(f"note: {split.name}: {which} no duration (--videos FILE); ends there go unchecked")
    if said is not None:
        silent = len({v for split in splits for v in split.truth.videos} - set(said))
        if silent:
            options.say(f"note: {count(silent, 'video has', 'videos have')} no subtitles in {subtitles}")
    if report:
        options.say(f"wrote {report}")
