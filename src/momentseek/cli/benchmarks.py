"""``momentseek simulate``, ``baseline``, ``debias`` and ``reproduce``: simulated corpora, baselines, papers' tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.baselines import BASELINES, BaselineSettings, write_baseline
from momentseek.benchmarks.datasets.common import check_target
from momentseek.benchmarks.debias.documents import as_json as to_json
from momentseek.benchmarks.debias.documents import as_text
from momentseek.benchmarks.debias.session import DebiasOptions, compare_systems
from momentseek.benchmarks.reproduction.paper_table import read_table, table_names
from momentseek.benchmarks.reproduction.result import document, write_documents
from momentseek.benchmarks.simulation.corpus import simulate as simulate_series
from momentseek.benchmarks.simulation.corpus import step_count
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.variants import VARIANTS, WORDS_AS_PICTURES
from momentseek.benchmarks.simulation.words_as_pictures import WordPictureSettings, simulate_words
from momentseek.cli import options
from momentseek.cli.cluster import run_on
from momentseek.cli.options import Number
from momentseek.cli.progress import TrainingLine, progress_bar
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.core.reports import count, text_table


@click.command()
@click.option("--out", "-o", "target", required=True, metavar="DIR", help="Folder to write.")
@click.option(
    "--like",
    type=click.Choice(["tvr", "charades", "activitynet", "tacos", "qvhighlights"]),
    default="tvr",
    show_default=True,
    help="Dataset to imitate: TV series with subtitles (tvr), or films whose actions have usual times (all others).",
)
@click.option("--videos", type=int, help="Number of videos.  [default: 2000]")
@click.option("--queries", type=int, help="Number of queries: 80 % train, 5 % val, 15 % test.  [default: 5000]")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same files.")
@click.option(
    "--hard", type=float, help="Difficulty from 0 (a linear model solves it) to 1 (no model can).  [default: 0.5]"
)
@click.option(
    "--variant",
    type=click.Choice([*VARIANTS, WORDS_AS_PICTURES]),
    help="Make the corpus harder in one way.  [default: default]",
)
@click.option("--annotations", metavar="FILE", help=f"With {WORDS_AS_PICTURES}: captions with times, such as TVR's.")
@click.option(
    "--bias", type=float, help="With films: share of moments at their action's usual time, 0 to 1.  [default: 0.9]"
)
@click.option("--verb-bias", type=float, help="With films: share of actions with their own usual time.  [default: 1]")
@click.option("--pool", type=int, help="With films: videos to search per query in the split mvmr.  [default: 50]")
@click.option("--video-dim", type=int, help="Dimensions of a clip's video feature.  [default: 256; films: 128]")
@click.option("--text-dim", type=int, help="Dimensions of subtitle and query features.  [default: 192; films: 96]")
@click.option("--force", is_flag=True, help="Overwrite the files of a folder that is not empty.")
@options.as_json
def simulate(
    target: str, like: str, seed: int, annotations: str | None, force: bool, as_json: bool, **given: Any
) -> None:
    """Simulate a corpus in which the ground truth is known.

    It has the statistics of a real dataset and the same files, in any size. Results on it say how well a method learns,
    but nothing about real videos.

    \b
    The standard corpus, and a model trained on it:
      momentseek simulate --seed 0 --out simulation
      momentseek train reloclnet --data simulation
    A small one, to try something within a second:
      momentseek simulate --videos 50 --queries 100 --out small
    One in which the val and test videos are not in any training list:
      momentseek simulate --variant new-library --out other
    Real captions and times, with video features made from the captions' words:
      momentseek simulate --variant words-as-pictures --annotations tvr_val_release.jsonl --out words
    Films in which actions have usual times, and a test set in which they do not:
      momentseek simulate --like charades --out films
      momentseek train tan2d --data films
    Films with several moments per query, and rated clips:
      momentseek simulate --like qvhighlights --out highlights
      momentseek train moment_detr --data highlights
    """
    optional_module("h5py", "train")
    chosen = {"seed": seed, **{name: value for name, value in given.items() if value is not None}}
    foreign = ("bias", "verb_bias", "pool") if like == "tvr" else ("queries", "variant")
    if wrong := [name for name in foreign if name in chosen]:
        raise MomentseekError(f"--{wrong[0].replace('_', '-')} is not a setting of --like {like}; leave it out")
    check_target(Path(target), force)
    if (annotations is None) != (chosen.get("variant") != WORDS_AS_PICTURES):
        raise MomentseekError(f"--annotations FILE and --variant {WORDS_AS_PICTURES} go together; give both or neither")
    if annotations is not None:
        _simulate_words(target, annotations, chosen, force, as_json)
    elif like == "tvr":
        _simulate_series(target, SimulationSettings(**chosen), force, as_json)
    else:
        _simulate_films(target, GroundingSettings(like=like, **chosen), force, as_json)


def _simulate_series(target: str, settings: SimulationSettings, force: bool, as_json: bool) -> None:
    with progress_bar(step_count(settings), "simulating") as advance:
        report = simulate_series(target, settings, force=force, progress=advance)
    if as_json:
        options.echo_json(report.as_json())
    else:
        click.echo(report.as_text())
    options.say(f"wrote {target}: {count(settings.videos, 'video')}, {count(settings.queries, 'query', 'queries')}")


def _simulate_words(target: str, annotations: str, chosen: dict[str, Any], force: bool, as_json: bool) -> None:
    wrong = sorted(set(chosen) - {"queries", "seed", "video_dim", "videos", "variant"})
    if wrong:
        raise MomentseekError(f"{parameter(wrong[0])} is not a setting of {WORDS_AS_PICTURES}; leave it out")
    settings = WordPictureSettings(**{name: value for name, value in chosen.items() if name != "variant"})
    sizes = simulate_words(annotations, target, settings, force=force)
    if as_json:
        options.echo_json(sizes)
    options.say(f"wrote {target}: {count(sizes['videos'], 'video')}, {count(sizes['queries'], 'query', 'queries')}")


def _simulate_films(target: str, settings: GroundingSettings, force: bool, as_json: bool) -> None:
    with progress_bar(settings.videos, "simulating") as advance:
        report = simulate_grounding(target, settings, force=force, progress=advance)
    if as_json:
        options.echo_json({"videos": settings.videos, "queries": report.queries, "smallest_pools": report.pools})
    for name, smallest in report.pools.items():
        if smallest < settings.pool:
            options.say(
                f"note: {name} has pools of {smallest} films where {settings.pool} were asked for; make more films "
                "(--videos), or smaller pools (--pool)"
            )
    queries = count(sum(report.queries.values()), "query", "queries")
    options.say(f"wrote {target}: {count(settings.videos, 'film')}, {queries}")


@click.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--train", metavar="FILE", help="Ground truth to learn locations from, in any known format.")
@click.option("--test", metavar="FILE", help="Ground truth whose queries to answer, in any known format.")
@click.option(
    "--out", "-o", "target", metavar="RUN", help="Write the run to this file: .jsonl, .parquet, or the format of --to."
)
@click.option("--to", metavar="FORMAT", help="Format of RUN. Default: by its ending.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Predictions per query.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of chance and bias-based.")
@click.option(
    "--samples", type=click.IntRange(min=1), default=100, show_default=True, help="Samples per query of bias-based."
)
@click.option(
    "--bandwidth",
    type=Number(0, min_open=True),
    help="Bandwidth of bias-based's density, as a share of the video. Default: 0.0013 for ActivityNet, else 0.008.",
)
@options.videos
@options.force
@click.option("--list", "listing", is_flag=True, help="List the baselines.")
@options.as_json
def baseline(
    name: str | None,
    train: str | None,
    test: str | None,
    target: str | None,
    to: str | None,
    videos: str | None,
    force: bool,
    listing: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer the queries of --test with the baseline NAME, which never looks at the videos.

    \b
    chance            random spans of the video
    predict-all       the whole video
    moment-frequency  the most frequent training locations
    bias-based        draws from the density of training locations, densest first

    \b
    How well locations alone score on Charades-CD:
      momentseek baseline bias-based --train charades_train.json --test charades_test_ood.json --out bias.jsonl
      momentseek evaluate bias.jsonl --truth charades_test_ood.json -m 'dR@1[IoU>={0.5,0.7}]' --invalid keep

    The moments are in the query's own video, or in all videos among which the query searches (its pool). The lengths of
    these videos must be known.
    """
    if listing:
        rows = [[b.name, "train" if b.learns else "nothing", b.title] for b in BASELINES.values()]
        click.echo(text_table(["baseline", "learns from", "what it predicts"], rows, align="lll"))
        return
    if name is None or test is None or target is None:
        raise MomentseekError("momentseek baseline NAME --test FILE --out RUN needs all three; --list shows the names")
    _check(name, train, settings["bandwidth"])
    options.check_targets([train, test, videos], [target], force)
    used, run = write_baseline(
        name, train=train, test=test, out=target, format=to, videos=videos, settings=BaselineSettings(**settings)
    )
    if as_json:
        about = {"baseline": name, "train": train, "test": test, "run": str(Path(target))}
        options.echo_json({**about, "queries": len(run), "moments": len(run.start), "settings": used})
        return
    words = "".join(f", {key} {value:g}" for key, value in used.items() if value is not None)
    queries, moments = count(len(run), "query", "queries"), count(len(run.start), "moment")
    options.say(f"wrote {Path(target)}: {name}{words}; {queries}, {moments}")


def _check(name: str, train: str | None, bandwidth: float | None) -> None:
    """Refuse a missing training set, and options that the baseline would ignore."""
    learns = BASELINES[name].learns
    if learns and train is None:
        raise MomentseekError(f"{name} learns where moments lie; give the training set (--train FILE)")
    if train is not None and not learns:
        raise MomentseekError(f"{name} learns nothing, so --train {train} would not be looked at; leave it out")
    if bandwidth is not None and name != "bias-based":
        raise MomentseekError(f"{name} has no density, so --bandwidth would change nothing; leave it out")


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="NAME=IID,OOD",
    help="Predictions of another program on both splits; repeatable.",
)
@click.option("--data", metavar="DIR", help="Data folder (contains a data.toml).")
@click.option("--train", default="train", show_default=True, metavar="SPLIT", help="The training split.")
@click.option(
    "--iid",
    default="test_iid",
    show_default=True,
    metavar="SPLIT",
    help="In-distribution test split.",
)
@click.option("--ood", default="test_ood", show_default=True, metavar="SPLIT", help="Out-of-distribution test split.")
@click.option("--truth-iid", metavar="FILE", help="Ground truth of iid predictions, instead of --data.")
@click.option("--truth-ood", metavar="FILE", help="Ground truth of ood predictions.")
@click.option(
    "--truth-train",
    metavar="FILE",
    help="Ground truth of the training set; without it, the report does not cover where training moments lie.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of seeds for each MODEL.",
)
@click.option("--preset", metavar="NAME", help="Settings of a paper. Default for simulated data: films.")
@click.option("--config", metavar="FILE", help="Read the settings from a TOML file instead of a preset.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting for all MODELs; repeatable."
)
@click.option("--out", "-o", metavar="FOLDER", help="Folder for the report and all models.")
@click.option(
    "--verbs",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also report results for the N most frequent verbs.",
)
@click.option(
    "--baseline-seeds",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Number of seeds of the random blind baselines; 0 leaves all baselines out.",
)
@click.option("--plots/--no-plots", default=True, help="Draw the figures, as PNG and SVG.")
@options.missing
@options.videos
@options.invalid
@options.on_cluster
@options.as_json
@options.quiet
def debias(
    models: tuple[str, ...], runs: tuple[str, ...], on: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Compare MODELs on a test split whose moments lie as in training (iid), and on one where they lie elsewhere (ood).

    \b
    A MODEL is
      mdd                        a model, trained with every seed
      'mdd[confounders=L*A]'     a model with its own settings, written as for --set
      runs/mdd                   the folder of a training run (a path has a slash)
      NAME=IID,OOD               two files of predictions; one may be left empty
      NAME=any of these          the same under another name; repeat a name for several seeds of one system

    \b
    What debiasing gains, on simulated films:
      momentseek simulate --like charades --out films
      momentseek debias tan2d mdd --data films --out debias
      momentseek debias tan2d mdd --data /mnt/films --out /mnt/debias --on auto
    Which confounders matter (Table 4 of debiased grounding):
      momentseek debias tan2d 'mdd[confounders=L]' 'mdd[confounders=L*A]' mdd --data films --out table4
    Predictions made elsewhere (needs no PyTorch):
      momentseek debias --run ours=iid.jsonl,ood.jsonl --truth-iid test_iid.json --truth-ood test_ood.json \\
        --truth-train train.json

    The first MODEL is the one that all others, and blind baselines, are compared with. FOLDER contains report.md,
    report.json, tables as CSV, figures/ and runs/. The same command continues after an interruption.
    """
    report = compare_systems(
        DebiasOptions(models=[*models, *runs], **given),
        announce=(lambda _: None) if quiet else options.say,
        progress=TrainingLine(quiet=quiet),
        spread=None if on is None else partial(run_on, on, quiet=quiet),
    )
    if report is None:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    if as_json:
        options.echo_json(to_json(report))
    else:
        click.echo(as_text(report))


def _complete_tables(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in table_names() if name.startswith(incomplete)]


@click.command()
@click.argument("table", required=False, shell_complete=_complete_tables)
@click.option("--list", "listed", is_flag=True, help="List the tables, or the rows of TABLE.")
@click.option("--data", metavar="DIR", help="Data folder with real features; otherwise the data are simulated there.")
@click.option("--rows", metavar="ROW,ROW", help="Run only these rows, and the first stages they need.")
@click.option("--seeds", type=click.IntRange(min=1), help="Number of seeds per row. Default: the table's, or 3.")
@click.option("--steps", type=click.IntRange(min=1), help="Training steps per row, instead of the table's.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting for all rows; repeatable."
)
@click.option("--protocol", metavar="NAME", help="Use this protocol instead of the paper's.")
@click.option("--estimate", is_flag=True, help="Only print the estimated CPU minutes of every row.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="ROW=FOLDER",
    help="Use a finished training run for a row; repeatable, once per seed.",
)
@click.option(
    "--out",
    "-o",
    default="reproduction",
    show_default=True,
    metavar="DIR",
    help="Output folder.",
)
@click.option("--markdown", is_flag=True, help="Print a GitHub table.")
@click.option("--latex", is_flag=True, help="Print a booktabs table.")
@options.on_cluster
@options.as_json
@options.quiet
def reproduce(
    table: str | None,
    listed: bool,
    rows: str | None,
    runs: tuple[str, ...],
    protocol: str | None,
    estimate: bool,
    markdown: bool,
    latex: bool,
    on: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Train every row of a TABLE (a paper's, or a TOML file), and print our figures next to the paper's.

    \b
    List the rows of a table (without its name: all tables):
      momentseek reproduce debiased-2 --list
    Table 2 of debiased grounding, on real features; then your own table:
      momentseek reproduce debiased-2 --data charades-cd
      momentseek reproduce my-table.toml
    How long each row would take:
      momentseek reproduce debiased-2 --data charades-cd --estimate
    All rows at once on a cluster: the same with --set threads=1 --on auto

    The table is written to DIR/TABLE.md, .tex, .html (with figures) and .json; all tables share DIR/runs and
    DIR/scores. Finished work is not repeated: the same command continues after an interruption.
    """
    if listed or not table:
        _list_tables(table, as_json)
        return
    if markdown + latex + as_json > 1:
        raise MomentseekError("choose one of --markdown, --latex and --json")
    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.benchmarks.reproduction.session import estimate_table, finished_runs, reproduce_table

    given["rows"] = [name.strip() for name in (rows or "").split(",") if name.strip()]
    if estimate:
        _show_estimate(estimate_table(table, announce=(lambda _: None) if quiet else options.say, **given), as_json)
        return
    result = reproduce_table(
        table,
        protocol=protocol,
        finished=finished_runs(runs),
        progress=TrainingLine(quiet=quiet),
        announce=(lambda _: None) if quiet else options.say,
        spread=None if on is None else partial(run_on, on, quiet=quiet),
        **given,
    )
    if result is None:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    write_documents(result, Path(given["out"]))
    _say_written(Path(given["out"]) / result.table.name, quiet)
    if as_json:
        options.echo_json(result.as_json())
    else:
        click.echo(document(result, "markdown" if markdown else "latex" if latex else "text"), nl=False)


def _say_written(stem: Path, quiet: bool) -> None:
    if quiet:
        return
    if find_spec("matplotlib") is None:
        options.say("note: the page has no figures; they need matplotlib: pip install 'momentseek[plots]'")
    options.say(f"wrote {stem}.md, .tex, .html and .json")


def _show_estimate(rows: Sequence[Any], as_json: bool) -> None:
    if as_json:
        options.echo_json([asdict(row) for row in rows])
        return
    shown = [[row.label, f"{row.seeds:,}", f"{row.steps:,}", f"{row.minutes:,.1f}"] for row in rows]
    shown.append(["all", "", "", f"{sum(row.minutes for row in rows):,.1f}"])
    click.echo(text_table(["row", "seeds", "steps", "processor minutes"], shown))


def _list_tables(table: str | None, as_json: bool) -> None:
    """Print the names of all tables, or the rows of one."""
    if table:
        shown = [[row.name, row.label] for row in read_table(table).rows.values() if not row.hidden]
    else:
        shown = [[name, read_table(name).title] for name in table_names()]
    if as_json:
        options.echo_json(dict(shown))
    else:
        click.echo(text_table(["name", "what"], shown, align="l"))
