"""``momentseek evaluate``, ``compare``, ``leaderboard`` and ``diagnose``: score, compare, rank and check runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from glob import glob
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import click

from momentseek.api.measuring import evaluate as evaluate_run
from momentseek.api.measuring import evaluate_systems, official_report, ranked_moments
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.cards import build_card, write_card
from momentseek.measuring.compare import compare as compare_evaluations
from momentseek.measuring.compare import largest_differences, unique_labels
from momentseek.measuring.comparison import render, render_differences
from momentseek.measuring.diagnose import diagnosis
from momentseek.measuring.diagnose.plots import draw
from momentseek.measuring.formats import read_corpus, read_runs, read_truth, write_bytes
from momentseek.measuring.leaderboard import build_leaderboard
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.ranked_lists import draw_ranked_lists
from momentseek.measuring.report import as_json as report_json
from momentseek.measuring.report import as_text, intervals
from momentseek.measuring.report import per_query as per_query_lines
from momentseek.measuring.result import Evaluation, short_labels


@click.command()
@click.argument("run", metavar="RUN", type=click.Path())
@options.truth
@options.protocol
@options.measures
@options.missing
@click.option("--by", metavar="FIELD", help="Break down by FIELD of the truth's queries (TVR: type), or by length.")
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap intervals.")
@click.option(
    "--per-query",
    metavar="FILE",
    type=click.Path(),
    help="Also write every query's values to FILE (.csv or .jsonl, optionally .gz).",
)
@click.option("--card", metavar="FILE", help="Also write a result card as JSON to FILE, and as Markdown next to it.")
@click.option("--system", metavar="NAME", help="With --card: name of the system. Default: the run's file name.")
@click.option("--cost", metavar="TEXT", help="With --card: cost of the run, such as '3 GPU hours'.")
@click.option(
    "--plots", metavar="DIR", help="Draw ranked and judged moments of a good, a median and a poor query into DIR."
)
@options.videos
@options.invalid
@options.as_json
@click.option("--official", is_flag=True, help="Print exactly what the protocol's official evaluator prints.")
def evaluate(
    run: str,
    truth: str,
    protocol: str | None,
    measures: tuple[str, ...],
    by: str | None,
    ci: bool,
    per_query: str | None,
    card: str | None,
    system: str | None,
    cost: str | None,
    plots: str | None,
    invalid: Any,
    as_json: bool,
    official: bool,
    **given: Any,
) -> None:
    """Score RUN, the ranked moments (or the captions) of a system, against ground truth.

    \b
    TVR-Ranking, as its evaluator computes it:
      momentseek evaluate predictions.json --truth test.json --protocol tvr-ranking
    Any measures, with confidence intervals, by query type:
      momentseek evaluate run.jsonl -t val.jsonl -m 'R@{1,5}[IoU>={0.5,0.7}]' -m AxIoU@5 --ci --by type
    TVR's and QVHighlights' official metrics files:
      momentseek evaluate submission.json --truth tvr_val.jsonl --official
    Captions of moments against reference captions:
      momentseek evaluate captions.jsonl --truth tvc_val_release.jsonl --protocol tvc

    Files may be gzipped. Without -m the protocol's measures are computed. Values are means over all judged queries.
    A judged query without predictions is an error, because leaving it out silently would raise the mean; --missing
    changes that. --json prints unrounded values between 0 and 1. --official follows the truth's own protocol and keeps
    impossible times, as the official tools do.
    """
    _check_outputs(official and (measures or by or ci or as_json or per_query or card or plots), plots)
    ending = _per_query_ending(per_query)
    options.check_targets([run, truth, given["videos"]], [per_query], force=True)
    rules = _check_names(protocol, measures)
    if official:
        text, notes = official_report(run, truth, protocol=protocol, invalid=invalid or "keep", **given)
        _say_notes(notes)
        click.echo(text, nl=False)
        return
    result = evaluate_run(run, truth, measures, protocol=rules, invalid=invalid or "error", **given)
    ends = intervals(result, by) if ci else None
    if by:
        result.by(by)  # refuse an unknown field before anything is written
    if per_query:
        write_bytes(per_query, per_query_lines(result, ending))
    if card:
        write_card(build_card(result, run, missing=given["missing"], system=system, cost=cost), card)
    if plots:
        _draw_lists(run, result, plots, rules, given["videos"])
    if as_json:
        options.echo_json(report_json(result, by, ends))
    else:
        click.echo(as_text(result, by, ends))
        _say_notes(result.notes)


def _check_outputs(wrong: object, plots: str | None) -> None:
    if wrong:
        raise MomentseekError(
            "--official prints a fixed report; leave out -m, --by, --ci, --per-query, --plots, --card, --json"
        )
    if plots:
        check_folder(plots)


def _draw_lists(run: str, result: Evaluation, plots: str, rules: str, videos: str | None) -> None:
    if not isinstance(result.judgements, Judgements):
        raise MomentseekError("--plots draws ranked moments, and these are captions; leave it out")
    corpus = read_corpus(videos) if videos else None
    ranked = ranked_moments(read_runs(run, corpus=corpus, invalid="keep"))
    for path in draw_ranked_lists(ranked, result.judgements, plots, rules):
        options.say(f"wrote {path}")


def _per_query_ending(per_query: str | None) -> str:
    ending = Path((per_query or "values.csv").removesuffix(".gz")).suffix
    if ending not in (".csv", ".jsonl"):
        raise MomentseekError(f"{per_query}: per-query values are written as .csv or .jsonl (or .gz of them)")
    return ending


def _check_names(protocol: str | None, measures: Sequence[str]) -> str:
    """Check the names of the protocol and the measures before large files are read; return the protocol's name."""
    rules = PROTOCOLS[protocol or "paper"]
    parse_all(measures, rules.options)
    return rules.name


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        options.say(f"note: {note}")


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
    help="Correct p-values for the number of pairs of runs, within each measure; tukey has its own correction.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Significance level: the largest p-value that counts as significant.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the resampling.")
@click.option(
    "--per-query",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=10,
    metavar="[N]",
    help="Also list the N (default: 10) queries on which the first two runs differ most, by the first measure.",
)
@click.option(
    "--cluster",
    type=click.Choice(["video", "none"]),
    default="video",
    show_default=True,
    help="Resample the queries of a video together (video), or each query by itself (none).",
)
@click.option("--power", is_flag=True, help="Also print the smallest difference that these queries could detect.")
@options.videos
@options.invalid
@click.option("--markdown", is_flag=True, help="Print a GitHub table with the best values in bold.")
@click.option("--latex", is_flag=True, help="Print a booktabs table with the best values in bold.")
@options.as_json
def compare(
    runs: tuple[str, ...],
    truth: str,
    protocol: str | None,
    measures: tuple[str, ...],
    missing: Any,
    per_query: int | None,
    power: bool,
    videos: str | None,
    invalid: Any,
    markdown: bool,
    latex: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare two or more RUNs query by query: which is better, by how much, and whether it may be chance.

    \b
    Two systems on TVR-Ranking, and the queries on which they differ most:
      momentseek compare ours.json theirs.json --truth test.json -m 'NDCG@20[IoU>={0.3,0.5}]' --per-query
    Four systems, corrected for multiple comparisons, as a table for a paper:
      momentseek compare a.json b.json c.json d.json -t test.json --test tukey --latex
    Two systems with several seeds each, given as NAME:PATTERN:
      momentseek compare 'ours:ours-*.json' 'theirs:theirs-*.json' -t test.json --power

    RUNs are ranked moments, or captions of moments. They are called a, b, c, … in the order given. A raised letter
    after a mean means that this run is significantly better than the run with that letter.
    """
    if len(runs) < 2:
        raise MomentseekError("a comparison needs at least two runs: momentseek compare RUN RUN… --truth FILE")
    if len(runs) > len(ascii_lowercase):
        raise MomentseekError(
            f"{len(runs)} runs are too many: they are called by letter, so at most 26 can be compared"
        )
    if markdown + latex + as_json > 1:
        raise MomentseekError("choose one of --markdown, --latex and --json")
    read = {"protocol": _check_names(protocol, measures), "missing": missing, "videos": videos}
    found = evaluate_systems(_systems(runs), truth, measures, invalid=invalid or "error", **read)
    comparison = compare_evaluations(found, **given)
    evaluations = [seeds[0] for seeds in found]
    measure = comparison.names[0]
    apart = largest_differences(evaluations[0], evaluations[1], measure, per_query) if per_query else []
    if as_json:
        result = comparison.as_dict()
        if per_query:
            result["largest_differences"] = {"measure": measure, "queries": [asdict(row) for row in apart]}
        options.echo_json(result)
        return
    style = "markdown" if markdown else "latex" if latex else "text"
    click.echo(render(comparison, style, power=power))
    if per_query:
        title = comparison.title(measure)
        click.echo("\n" + render_differences(apart, title, comparison.runs, comparison.percent, style))
    _say_notes(list(dict.fromkeys(note for evaluation in evaluations for note in evaluation.notes)))


def _systems(runs: Sequence[str]) -> dict[str, list[str]]:
    """Return the files of every system: the file given, or those that match NAME:PATTERN, one per seed."""
    found: list[tuple[str, list[str]]] = []
    for text, label in zip(runs, short_labels(runs), strict=True):
        name, sign, pattern = text.partition(":")
        if not sign or Path(text).exists():
            found.append((label, [text]))
            continue
        files = sorted(glob(pattern))
        if not files:
            raise MomentseekError(f"{text}: no file fits the pattern {pattern}; write NAME:PATTERN, such as a:a-*.json")
        found.append((name, files))
    return dict(zip(unique_labels([name for name, _ in found]), [files for _, files in found], strict=True))


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option(
    "--truth",
    "-t",
    "truths",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Ground truth, in any known format. Give it twice for iid and ood test sets, in this order.",
)
@options.measures
@options.protocol
@options.missing
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(diagnosis.PARTS),
    help="Run only this part; repeatable.",
)
@click.option(
    "--annotators",
    "annotations",
    multiple=True,
    metavar="FILE",
    help="Score against each annotator of this file in turn: re-annotations of the truth's queries (CSV with HITId, "
    "times in percent).",
)
@click.option(
    "--noise",
    "gammas",
    multiple=True,
    type=click.FloatRange(0, 1, min_open=True),
    metavar="GAMMA",
    help="Standard deviation of the noise on IoUs; repeatable. Default: 0.05, 0.1 and 0.2.",
)
@click.option("--clip-noise", is_flag=True, help="Keep noisy IoUs within 0 and 1 (the paper does not).")
@options.videos
@options.invalid
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.option("--plots", "folder", metavar="DIR", help="Also draw the figures into DIR, as PNG and SVG.")
@options.as_json
def diagnose(
    runs: tuple[str, ...],
    truths: tuple[str, ...],
    measures: tuple[str, ...],
    protocol: str | None,
    annotations: tuple[str, ...],
    videos: str | None,
    invalid: Any,
    folder: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Check whether the scores of RUNs can be trusted: ties, label noise, location bias and blind spots of measures.

    \b
    axioms       which measures change when they should not, or do not change when they should, with examples
    ties         on how many queries the runs score the same
    noise        how much the scores change if the true moments are uncertain
    location     whether runs find moments, or only guess where moments usually are
    performance  whether a run's own scores predict on which queries it is good

    \b
    Everything about two systems, with figures:
      momentseek diagnose ours.json theirs.json --truth test.json --plots figures
    Only the axioms, for two measures:
      momentseek diagnose run.json -t test.json --only axioms -m 'AP@5[IoU>0.5]' -m AxIoU@5
    Scores by five other annotators:
      momentseek diagnose run.json -t charades_test.json --only noise --annotators test_00.csv
    In- and out-of-distribution test sets, each system's runs in the same order:
      momentseek diagnose iid.json ood.json -t test_iid.json -t test_ood.json --only location

    Without -m every part uses the measures that its paper examines. Parts that lack something (a second run,
    durations) are skipped, and say why.
    """
    if not runs:
        raise MomentseekError("there is nothing to diagnose: momentseek diagnose RUN… --truth FILE")
    rules = _check_names(protocol, measures)
    if folder:
        check_folder(folder)
    with show_if_slow("reading"):
        named, judgements = _read_tables(runs, truths, videos, invalid or "error")
        people = [read_truth(path, format="hidden-challenges", invalid=invalid or "error") for path in annotations]
    found = diagnosis.diagnose(
        named, judgements, measures, protocol=rules, annotators=people, patience=show_if_slow, **given
    )
    if as_json:
        options.echo_json(found.as_json())
    else:
        click.echo(found.as_text())
        tables = (*judgements, *(run for _, run in named), *people)
        _say_notes([f"{table.source}: {finding}" for table in tables for finding in table.findings])
    if folder:
        _draw(found, folder)


def _read_tables(
    runs: tuple[str, ...], truths: tuple[str, ...], videos: str | None, invalid: Any
) -> tuple[list[tuple[str, Run]], list[Judgements]]:
    """Read the runs with their labels, and the truths."""
    corpus = read_corpus(videos) if videos else None
    judgements = [read_truth(path, corpus=corpus, invalid=invalid) for path in truths]
    opened = [ranked_moments(read_runs(path, corpus=corpus, invalid=invalid)) for path in runs]
    return list(zip(unique_labels(short_labels(runs)), opened, strict=True)), judgements


def _draw(found: diagnosis.Diagnosis, folder: str) -> None:
    with show_if_slow("drawing"):
        written = draw(found, folder)
    for figure in written:
        options.say(f"wrote {figure}")
    if not written:
        options.say(f"note: nothing was drawn into {folder}, because no part that was run has a figure")


@contextmanager
def show_if_slow(doing: str) -> Iterator[None]:
    """On a terminal, print what is being done if it takes longer than a second."""
    timer = threading.Timer(1.0, options.say, [f"{doing} …"])
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@click.command()
@click.argument("cards", metavar="CARDS...", nargs=-1, required=True)
@click.option(
    "--measure",
    "-m",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Show MEASURE; the first one ranks the systems; repeatable.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Significance level.",
)
@click.option("--html", "page", metavar="FILE", help="Also write a self-contained HTML page.")
@click.option("--markdown", is_flag=True, help="Print GitHub tables.")
@options.force
@options.as_json
def leaderboard(
    cards: tuple[str, ...], page: str | None, markdown: bool, force: bool, as_json: bool, **given: Any
) -> None:
    """Rank the systems of result CARDS (files, or folders of them).

    Systems evaluated on the same data with the same protocol share a table and are compared query by query. Other data
    or protocols have their own tables.

    \b
      momentseek evaluate ours.jsonl -t test.jsonl --card cards/ours.json
      momentseek leaderboard cards/ --html leaderboard.html
    """
    options.check_targets([path for path in cards if Path(path).is_file()], [page], force)
    board = build_leaderboard(cards, **given)
    if page:
        write_bytes(page, board.render("html").encode())
    if as_json:
        options.echo_json(board.as_json())
    else:
        click.echo(board.render("markdown" if markdown else "text"))
        _say_notes(board.notes)
