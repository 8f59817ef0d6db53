"""``momentseek data consensus``: several workers' labels into one relevance level per pair."""

from __future__ import annotations

import click

from momentseek.cli import options


@click.command()
@click.argument("labels", metavar="LABELS")
@click.option("--out", metavar="FILE", help="Write the kept pairs: CSV with pair_id, relevance, annotators.")
@click.option("--report", metavar="FILE", help="Write every decision with its labels, one JSON object per line.")
@click.option("--plots", "folder", metavar="DIR", help="Draw the score matrix and distribution, as PNG and SVG.")
@click.option(
    "--incomplete",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="What a pair with neither two nor four labels is: refused, or left out.",
)
@click.option(
    "--repeats",
    type=click.Choice(["count", "error"]),
    default="count",
    show_default=True,
    help="What a worker's second label of a pair is: one like any other (as in TVR-Ranking's own file), or refused.",
)
@click.option(
    "--candidates",
    metavar="FILE",
    help="The pairs that were judged, as `momentseek data candidates` wrote them (both batches: give it twice).",
    multiple=True,
)
@click.option(
    "--truth",
    metavar="FILE",
    help="With --candidates: write the judged moments as ground truth, our own (.jsonl) or TVR-Ranking's (.json).",
)
@click.option("--exam", is_flag=True, help="LABELS are an exam: many workers on the same pairs, the median is true.")
@click.option(
    "--pass-share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="With --exam: the share of labels within 1 of the median that passes.",
)
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
    as_json: bool,
) -> None:
    """Make one relevance level per query–moment pair out of several workers' LABELS.

    LABELS is CSV (or .gz) with the columns pair_id, worker, relevance (0 to 4). Two workers agree if they differ by
    at most 1; of four, one lowest and one highest are set aside first. The level is the mean of the two, rounded
    up. Pairs without agreement are discarded.

    \b
    TVR-Ranking's published labels:
      momentseek data consensus raw_annotation.csv --out pairs.csv
    Why each pair was kept or not, and the paper's figures:
      momentseek data consensus labels.csv --report decisions.jsonl --plots figures
    Who passes the qualification exam, if 90 % of the labels must be close to the median:
      momentseek data consensus exam.csv --exam --pass-share 0.9
    """
    import json

    from momentseek.construct.labels import read_labels
    from momentseek.errors import MomentseekError
    from momentseek.formats import write_bytes

    if exam and (folder or candidates or truth):
        raise MomentseekError("an exam has no figures and no truth file; leave out --plots, --candidates and --truth")
    if bool(candidates) != bool(truth):
        raise MomentseekError("--candidates and --truth belong together: the judged pairs, and the truth to write")
    if exam:
        _exam(labels, out, report, pass_share, as_json)
        return
    if folder:
        from momentseek.figures import check_folder

        check_folder(folder)
    given = read_labels(labels)
    from typing import cast

    from momentseek.construct.agreement import agreement
    from momentseek.construct.consensus import Incomplete, Repeats, consensus
    from momentseek.construct.consensus_text import as_json as to_json
    from momentseek.construct.consensus_text import as_text
    from momentseek.construct.decisions import as_lines
    from momentseek.construct.drift import drift
    from momentseek.construct.judged_pairs import write_pairs
    from momentseek.construct.scores import scores

    found = consensus(given, incomplete=cast(Incomplete, incomplete), repeats=cast(Repeats, repeats))
    judged = [
        (pair, level, count)
        for pair, level, count in zip(given.pair_ids, found.relevance.tolist(), given.counts.tolist(), strict=True)
        if level >= 0
    ]
    if truth:
        from momentseek.construct.candidate_files import judged_truth, read_candidates
        from momentseek.formats import write_truth

        table = judged_truth([c for path in candidates for c in read_candidates(path)], {p: r for p, r, _ in judged})
        graded = truth.removesuffix(".gz").endswith(".json")
        write_truth(table, truth, format="tvr-ranking" if graded else "native")
    if out:
        write_bytes(out, write_pairs(judged))
    if report:
        write_bytes(report, as_lines(found.decisions()))
    parts = found, agreement(given), drift(found), scores(found)
    click.echo(json.dumps(to_json(*parts), indent=2, ensure_ascii=False) if as_json else as_text(*parts))
    if folder:
        from momentseek.construct.consensus_plots import draw

        for written in draw(parts[3], folder):
            options.say(f"wrote {written}")
    if given.repeated.any():
        options.say(
            f"note: in {len(set(given.pair[given.repeated].tolist())):,} pairs a worker judged more than once; each "
            "label counts, but agreement is measured between different workers only (--repeats error refuses them)"
        )
    for name in (out, report, truth):
        if name:
            options.say(f"wrote {name}")


def _exam(labels: str, out: str | None, report: str | None, share: float, as_json: bool) -> None:
    import json

    from momentseek.construct.decisions import as_lines
    from momentseek.construct.exam import exam
    from momentseek.construct.exam_text import as_json as to_json
    from momentseek.construct.exam_text import as_text
    from momentseek.construct.judged_pairs import write_pairs
    from momentseek.construct.labels import read_labels
    from momentseek.formats import write_bytes

    given = read_labels(labels)
    found = exam(given, share)
    if out:
        write_bytes(out, write_pairs(zip(given.pair_ids, found.truth.tolist(), given.counts.tolist(), strict=True)))
    if report:
        write_bytes(report, as_lines(found.decisions()))
    click.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False) if as_json else as_text(found))
    for name in (out, report):
        if name:
            options.say(f"wrote {name}")
