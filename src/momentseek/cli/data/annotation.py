"""Commands about judged pairs: ``momentseek data candidates``, ``label-studio``, ``consensus``, ``simulated-truth``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.datasets.annotation.agreement import build_exam
from momentseek.benchmarks.datasets.annotation.calibration import calibrate_files, calibration_json, calibration_text
from momentseek.benchmarks.datasets.annotation.candidates import build_candidates
from momentseek.benchmarks.datasets.annotation.consensus_report import build_consensus
from momentseek.benchmarks.datasets.annotation.label_studio import build_label_studio, page_beside, read_label_studio
from momentseek.benchmarks.datasets.annotation.model_judge import build_judgements
from momentseek.benchmarks.datasets.annotation.pooling import build_pool
from momentseek.benchmarks.simulation.truths import POOL_DEPTH, full_truth, load_known, pooled_truth
from momentseek.cli import options
from momentseek.cli.answers import endpoint_settings, takes_endpoint
from momentseek.cli.data import finish, refuse_without
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.core.reports import count
from momentseek.measuring.formats import read_run
from momentseek.measuring.formats.files import write_truth


@click.command()
@click.argument("queries", metavar="QUERIES")
@click.argument("captions", metavar="CAPTIONS")
@click.option("--out", required=True, metavar="FILE", help="Write the candidates to FILE (JSON Lines, optionally .gz).")
@click.option("--batch", type=click.IntRange(min=1), default=20, show_default=True, help="Candidates per batch.")
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="Text encoder for the similarity, or file:VECTORS.",
)
@click.option("--labels", metavar="PAIRS", help="Judged first batch (from `data consensus`); writes the second batch.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="With --labels: number of last candidates of the first batch that decide.",
)
@click.option(
    "--still-relevant",
    type=click.FloatRange(0, 4),
    default=2.0,
    show_default=True,
    metavar="LEVEL",
    help="With --labels: mean level of these candidates from which a second batch is written.",
)
@click.option(
    "--identical",
    type=click.Choice(["once", "each"]),
    default="once",
    show_default=True,
    help="For queries with the same text: judge only the first, or each.",
)
@click.option("--report", metavar="FILE", help="Write the decision on every query, one JSON object per line.")
@options.force
@options.as_json
def candidates(force: bool, as_json: bool, **given: Any) -> None:
    """Find the moments in CAPTIONS whose captions are most similar to each of QUERIES.

    Both are truth files in any format; a moment's caption is its query's text. Candidates come in batches of 20. Once
    the first batch is judged, --labels writes the second for queries whose last 5 candidates are still relevant.

    \b
    The first batch and, after it is judged, the second:
      momentseek data candidates queries.jsonl captions.jsonl --out first.jsonl
      momentseek data candidates queries.jsonl captions.jsonl --labels pairs.csv --out second.jsonl

    The output is a predictions file with each pair's id, rank, batch and caption; `momentseek data label-studio write`
    turns it into annotation tasks.
    """
    inputs = [given["queries"], given["captions"], given["labels"]]
    options.check_targets(inputs, [given["out"], given["report"]], force)
    if not given["labels"]:
        refuse_without("without --labels", last="--last", still_relevant="--still-relevant")
    finish(build_candidates(**given, progress=progress_bars), as_json)


@click.command()
@click.argument("labels", metavar="LABELS")
@click.option("--out", metavar="FILE", help="Write the kept pairs: CSV with pair_id, relevance, annotators, labels.")
@click.option("--report", metavar="FILE", help="Write every decision with its labels, one JSON object per line.")
@click.option("--plots", metavar="DIR", help="Draw the label matrix and distribution as PNG and SVG.")
@click.option(
    "--incomplete",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="For pairs without exactly two or four labels: refuse the file, or drop them.",
)
@click.option(
    "--repeats",
    type=click.Choice(["count", "error"]),
    default="count",
    show_default=True,
    help="For a worker's second label of a pair: count it (as in TVR-Ranking's file), or refuse it.",
)
@click.option(
    "--candidates",
    metavar="FILE",
    help="Judged pairs from `momentseek data candidates`; repeatable, once per batch.",
    multiple=True,
)
@click.option(
    "--truth",
    metavar="FILE",
    help="With --candidates: write the judged moments as ground truth, as our .jsonl or TVR-Ranking's .json.",
)
@click.option(
    "--exam",
    is_flag=True,
    help="Treat LABELS as an exam: many workers judge the same pairs, and the median is correct.",
)
@click.option(
    "--pass-share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="With --exam: share of labels that must be within 1 of the median to pass.",
)
@options.force
@options.as_json
def consensus(labels: str, exam: bool, pass_share: float, force: bool, as_json: bool, **given: Any) -> None:
    """Turn several workers' LABELS into one relevance level per query–moment pair.

    LABELS is CSV (or .gz) with the columns pair_id, worker, relevance (0 to 4). Two workers agree if their labels
    differ by at most 1. Of four labels, one lowest and one highest are dropped first. The level is the mean of the two
    labels, rounded up. Pairs without agreement are discarded. A worker's second label of a pair counts, as in
    TVR-Ranking, and is reported.

    \b
    TVR-Ranking's published labels:
      momentseek data consensus raw_annotation.csv --out pairs.csv
    Why each pair was kept or not, and the paper's figures:
      momentseek data consensus labels.csv --report decisions.jsonl --plots figures
    Who passes the qualification exam, if 90 % of the labels must be within 1 of the median:
      momentseek data consensus exam.csv --exam --pass-share 0.9
    """
    candidates, truth, plots = given["candidates"], given["truth"], given["plots"]
    options.check_targets([labels, *candidates], [given["out"], given["report"], truth], force)
    if exam and (plots or candidates or truth):
        raise MomentseekError("an exam has no figures and no truth file; leave out --plots, --candidates and --truth")
    if bool(candidates) != bool(truth):
        raise MomentseekError("--candidates and --truth belong together: the judged pairs, and the truth to write")
    if exam:
        refuse_without("in an exam", incomplete="--incomplete", repeats="--repeats")
        finish(build_exam(labels, out=given["out"], report=given["report"], pass_share=pass_share), as_json)
        return
    refuse_without("without --exam", pass_share="--pass-share")
    if plots:
        check_folder(plots)
    with options.new_folders(plots):
        finish(build_consensus(labels, **given), as_json)


@click.group()
def label_studio() -> None:
    """Have query–moment pairs judged in Label Studio (labelstud.io), the tool TVR-Ranking used.

    \b
      momentseek data label-studio write first.jsonl --base-url https://example.org/videos --out tasks.json
      momentseek data label-studio read export.json --out labels.csv

    `write` makes the tasks to import and the labelling page to paste into the project's settings. `read` turns the
    project's JSON export into labels for `momentseek data consensus`.
    """


@label_studio.command()
@click.argument("candidates", metavar="CANDIDATES")
@click.option("--out", required=True, metavar="FILE", help="Write the tasks to FILE (JSON) for Label Studio.")
@click.option(
    "--config", metavar="FILE", help="Write the labelling page to FILE (XML). Default: OUT.xml, next to the tasks."
)
@click.option(
    "--base-url",
    required=True,
    metavar="URL",
    help="Base address of the videos; a video's address is URL/VIDEO followed by --suffix.",
)
@click.option("--suffix", default=".mp4", show_default=True, help="End of a video's address.")
@click.option(
    "--disagreed",
    metavar="LABELS",
    help="Write only pairs that need two more annotators: their two labels in the file LABELS differ by more than 1.",
)
@click.option("--report", metavar="FILE", help="Write whether and why each pair is a task, one JSON object per line.")
@options.force
@options.as_json
def write(force: bool, as_json: bool, **given: Any) -> None:
    """Write an annotation task for each query–moment pair in CANDIDATES, and the page on which annotators judge it.

    CANDIDATES is the output of `momentseek data candidates`, or any truth file. The page shows the query, the moment
    and the guideline for the five levels of relevance.

    \b
    All pairs; then, for two more annotators, those on which the first two disagree:
      momentseek data label-studio write first.jsonl --base-url https://example.org/videos --out tasks.json
      momentseek data label-studio write first.jsonl --base-url https://example.org/videos --out more.json \\
        --disagreed labels.csv
    """
    out, page = given["out"], given["config"] or page_beside(given["out"])
    if page == out:
        raise MomentseekError(f"{out}: the tasks and the labelling page need a file each; call the tasks .json")
    options.check_targets([given["candidates"], given["disagreed"]], [out, page, given["report"]], force)
    finish(build_label_studio(**given), as_json)


@label_studio.command()
@click.argument("exports", metavar="EXPORT...", nargs=-1, required=True)
@click.option(
    "--out", required=True, metavar="FILE", help="Write the labels to FILE: CSV with pair_id, worker, relevance."
)
@click.option("--report", metavar="FILE", help="Write what happened to every annotation, one JSON object per line.")
@options.force
@options.as_json
def read(exports: tuple[str, ...], out: str, report: str | None, force: bool, as_json: bool) -> None:
    """Turn Label Studio's JSON EXPORTs into labels, and report what was skipped or is still missing.

    Several exports (say, of the first two annotators and of two more) are joined in the order given. An annotation that
    is in two of them counts once. If a person judged a pair again, the last judgement counts.
    """
    options.check_targets(exports, [out, report], force)
    finish(read_label_studio(exports, out, report=report), as_json)


@click.command(name="simulated-truth")
@click.argument("folder", metavar="FOLDER")
@click.option("--out", required=True, metavar="FILE", help="Write the judgements to FILE (JSON Lines).")
@click.option(
    "--split", type=click.Choice(["val", "test"]), default="test", show_default=True, help="Split whose queries to use."
)
@click.option(
    "--run", "runs", multiple=True, metavar="FILE", help="Judge only moments that this run found; repeatable."
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=POOL_DEPTH,
    show_default=True,
    help="With --run: use only the first N moments of each run.",
)
@options.force
@options.as_json
def simulated_truth(
    folder: str, out: str, split: str, runs: tuple[str, ...], depth: int, force: bool, as_json: bool
) -> None:
    """Write the true relevance of every moment of a simulated corpus for every query of a split.

    A simulated corpus is judged like TVR-Ranking: only the moments that caption similarity ranks first are in the pool,
    and a system may score by guessing that pool. The output judges all moments instead; those of level 0 are left out.

    \b
      momentseek data simulated-truth simulation --out full.jsonl
      momentseek evaluate reloclnet.jsonl --truth full.jsonl -m 'NDCG@20[IoU>=0.5]'
    Only moments among the first 40 of either of two systems:
      momentseek data simulated-truth simulation --run a.jsonl --run b.jsonl --out pooled.jsonl
    """
    if not runs:
        refuse_without("without --run", depth="--depth")
    options.check_targets([folder, *runs], [out], force)
    known = load_known(Path(folder))
    read = [read_run(Path(run)) for run in runs]
    truth = pooled_truth(known, split, read, depth) if read else full_truth(known, split)
    write_truth(truth, Path(out))
    if as_json:
        options.echo_json({"queries": len(truth), "judged": len(truth.start), "out": out})
    options.say(f"wrote {out}: {count(len(truth.start), 'moment')} for {count(len(truth), 'query', 'queries')}")


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@options.truth
@click.option("--out", required=True, metavar="FILE", help="Write the moments to judge to FILE, as candidates.")
@click.option("--depth", type=click.IntRange(1), default=10, show_default=True, help="Take each run's first N moments.")
@click.option(
    "--same",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.7,
    show_default=True,
    metavar="IOU",
    help="Merge moments that overlap by at least this IoU.",
)
@click.option("--report", metavar="FILE", help="Write which runs found each moment, one JSON object per line.")
@options.force
@options.as_json
def pool(runs: tuple[str, ...], truth: str, out: str, force: bool, as_json: bool, **given: Any) -> None:
    """Pool the first moments of several RUNs for judging, without those that the truth already judges.

    \b
    Judge what two new systems return and nobody has judged yet:
      momentseek data pool ours.jsonl theirs.jsonl --truth test.jsonl --out pool.jsonl
      momentseek data label-studio write pool.jsonl --base-url https://example.org/videos --out tasks.json
    """
    options.check_targets([*runs, truth], [out, given["report"]], force)
    finish(build_pool(runs, truth, out, **given), as_json)


@click.command()
@click.argument("candidates", metavar="CANDIDATES")
@takes_endpoint
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="Write the labels to FILE: CSV with pair_id, worker (model:NAME), relevance.",
)
@click.option(
    "--truth", metavar="FILE", help="Also write the judged moments as ground truth, marked with the model's name."
)
@click.option(
    "--report", metavar="FILE", help="Write every judgement with the model's answer, one JSON object per line."
)
@options.force
@options.as_json
def judge(candidates: str, force: bool, as_json: bool, **given: Any) -> None:
    """Have a vision model judge the relevance of CANDIDATES from 0 to 4, with the guideline for human annotators.

    CANDIDATES is the output of `momentseek data pool` or `candidates`, or any truth file. Before you trust the model,
    compare it with human judgements (`data calibrate`). The API key is read from MOMENTSEEK_CHAT_KEY or OPENAI_API_KEY.

    \b
      momentseek data judge pool.jsonl --media videos --base-url http://localhost:8000/v1 --model qwen2.5-vl \\
        --out labels.csv --truth model-truth.jsonl
      momentseek data calibrate labels.csv people.csv

    After Ctrl-C or a failure the same command continues; answers so far are in OUT.partial.jsonl.
    """
    options.check_targets([candidates], [given["out"], given["truth"], given["report"]], force)
    settings, budget = endpoint_settings(given)
    finish(build_judgements(candidates, settings=settings, budget=budget, progress=progress_bars, **given), as_json)


@click.command()
@click.argument("labels", metavar="LABELS")
@click.argument("people", metavar="PEOPLE")
@click.option(
    "--candidates",
    metavar="FILE",
    help="Judged pairs, to look up their queries. Default: the query is the part of a pair's id before the slash.",
)
@options.as_json
def calibrate(labels: str, people: str, candidates: str | None, as_json: bool) -> None:
    """Compare a model's LABELS with those of PEOPLE: weighted kappa, confusion, and bias by level.

    PEOPLE is a file of labels (the median of several workers counts), or of judged pairs from `data consensus`.

    \b
      momentseek data calibrate labels.csv raw_annotation.csv
    """
    found = calibrate_files(labels, people, candidates)
    if as_json:
        options.echo_json(calibration_json(found))
    else:
        click.echo(calibration_text(found))
