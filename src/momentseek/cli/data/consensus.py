"""``momentseek data consensus``: turn several annotators' labels into one relevance level per pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from momentseek.benchmarks.datasets.annotation.agreement import measure_agreement
from momentseek.benchmarks.datasets.annotation.candidates import build_truth, read_candidates
from momentseek.benchmarks.datasets.annotation.consensus import (
    Incomplete,
    Repeats,
    draw_consensus,
    find_consensus,
    label_distributions,
    measure_drift,
)
from momentseek.benchmarks.datasets.annotation.consensus_report import as_json as to_json
from momentseek.benchmarks.datasets.annotation.consensus_report import as_text
from momentseek.benchmarks.datasets.annotation.labels import read_labels, write_pairs
from momentseek.benchmarks.datasets.common import as_json_lines
from momentseek.cli import options
from momentseek.cli.data import refuse_without
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.core.reports import count
from momentseek.measuring.formats import FORMATS, write_all

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from momentseek.benchmarks.datasets.annotation.labels import AnnotatorLabels


@click.command()
@click.argument("labels", metavar="LABELS")
@click.option("--out", metavar="FILE", help="Write the kept pairs: CSV with pair_id, relevance, annotators, labels.")
@click.option("--report", metavar="FILE", help="Write every decision with its labels, one JSON object per line.")
@click.option("--plots", "folder", metavar="DIR", help="Draw the label matrix and distribution as PNG and SVG.")
@click.option(
    "--incomplete",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Pairs with neither two nor four labels: refuse them, or leave them out.",
)
@click.option(
    "--repeats",
    type=click.Choice(["count", "error"]),
    default="count",
    show_default=True,
    help="A worker's second label of a pair: count it (as in TVR-Ranking's own file), or refuse it.",
)
@click.option(
    "--candidates",
    metavar="FILE",
    help="The judged pairs, as `momentseek data candidates` wrote them; repeatable, once per batch.",
    multiple=True,
)
@click.option(
    "--truth",
    metavar="FILE",
    help="With --candidates: write the judged moments as ground truth, our own (.jsonl) or TVR-Ranking's (.json).",
)
@click.option(
    "--exam", is_flag=True, help="LABELS are an exam: many workers judge the same pairs, and the median is the truth."
)
@click.option(
    "--pass-share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="With --exam: workers pass if this share of their labels is within 1 of the median.",
)
@options.force
@options.as_json
def command(
    labels: str,
    out: str | None,
    report: str | None,
    folder: str | None,
    incomplete: str,
    repeats: str,
    candidates: tuple[str, ...],
    truth: str | None,
    exam: bool,
    pass_share: float,
    force: bool,
    as_json: bool,
) -> None:
    """Turn several workers' LABELS into one relevance level per query–moment pair.

    LABELS is CSV (or .gz) with the columns pair_id, worker, relevance (0 to 4). Two workers agree if they differ by
    at most 1; of four labels, one of the lowest and one of the highest are set aside first. The level is the mean of
    the two, rounded up. Pairs without agreement are discarded. A worker's second label of a pair counts, as in
    TVR-Ranking, and is reported.

    \b
    TVR-Ranking's published labels:
      momentseek data consensus raw_annotation.csv --out pairs.csv
    Why each pair was kept or not, and the paper's figures:
      momentseek data consensus labels.csv --report decisions.jsonl --plots figures
    Who passes the qualification exam, if 90 % of the labels must be close to the median:
      momentseek data consensus exam.csv --exam --pass-share 0.9
    """
    import json

    options.check_targets([labels, *candidates], [out, report, truth], force)
    if exam and (folder or candidates or truth):
        raise MomentseekError("an exam has no figures and no truth file; leave out --plots, --candidates and --truth")
    if bool(candidates) != bool(truth):
        raise MomentseekError("--candidates and --truth belong together: the judged pairs, and the truth to write")
    if exam:
        refuse_without("in an exam", incomplete="--incomplete", repeats="--repeats")
        _exam(labels, out, report, pass_share, as_json)
        return
    refuse_without("without --exam", pass_share="--pass-share")
    if folder:
        check_folder(folder)
    given = read_labels(labels)
    from typing import cast

    found = find_consensus(given, incomplete=cast(Incomplete, incomplete), repeats=cast(Repeats, repeats))
    if not found.complete.any():
        raise MomentseekError(f"{labels}: no pair has two or four labels, so nothing is left to agree on")
    if (out or truth) and not found.kept.any():
        raise MomentseekError(
            f"{labels}: there is no agreement on any pair, so there is nothing to write; leave out --out and --truth "
            "to see the report"
        )
    judged = [row for row in zip(given.pair_ids, found.relevance.tolist(), *_sizes(given), strict=True) if row[1] >= 0]
    files: dict[str | PathLike[str], bytes] = {}
    if out:
        files[out] = write_pairs(judged)
    if report:
        files[report] = as_json_lines(found.decisions())
    if truth:
        pairs = [c for path in candidates for c in read_candidates(path)]
        writer = FORMATS["tvr-ranking" if truth.removesuffix(".gz").endswith(".json") else "native"]
        files[truth] = writer.to_bytes(build_truth(pairs, {pair: level for pair, level, *_ in judged}))
    parts = found, measure_agreement(given), measure_drift(found), label_distributions(found)
    text = json.dumps(to_json(*parts), indent=2, ensure_ascii=False) if as_json else as_text(*parts)
    drawn: list[Path] = []
    if folder:
        drawn = draw_consensus(parts[3], folder)
    write_all(files)
    click.echo(text)
    if given.repeated.any():
        alone = int((found.complete & (given.people == 1)).sum())
        options.say(
            f"note: in {count(len(set(given.pair[given.repeated].tolist())), 'pair')} a worker judged more than once"
            f"{f', and in {alone:,} of them all labels are by one worker' if alone else ''}; each label counts, but "
            "agreement is measured between different workers only (--repeats error refuses them)"
        )
    for name in (*drawn, *files):
        options.say(f"wrote {name}")


def _sizes(labels: AnnotatorLabels) -> tuple[list[int], list[int]]:
    """Annotators and labels of every pair."""
    return labels.people.tolist(), labels.counts.tolist()


def _exam(labels: str, out: str | None, report: str | None, share: float, as_json: bool) -> None:
    import json

    from momentseek.benchmarks.datasets.annotation.agreement import as_json as to_json
    from momentseek.benchmarks.datasets.annotation.agreement import as_text, mark_exam

    given = read_labels(labels)
    found = mark_exam(given, share)
    text = json.dumps(to_json(found), indent=2, ensure_ascii=False) if as_json else as_text(found)
    files: dict[str | PathLike[str], bytes] = {}
    if out:
        files[out] = write_pairs(zip(given.pair_ids, found.truth.tolist(), *_sizes(given), strict=True))
    if report:
        files[report] = as_json_lines(found.decisions())
    write_all(files)
    click.echo(text)
    for name in files:
        options.say(f"wrote {name}")
