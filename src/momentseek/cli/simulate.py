"""``momentseek simulate``: make a corpus to train and test on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.simulation.corpus import simulate, step_count
from momentseek.benchmarks.simulation.files import check_target
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import options
from momentseek.cli.progress import progress_bar
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.reports import count


@click.command()
@click.option("--out", "-o", "target", required=True, metavar="DIR", help="The folder to make.")
@click.option(
    "--like",
    type=click.Choice(["tvr", "charades", "activitynet"]),
    default="tvr",
    show_default=True,
    help="The corpus to resemble: series with subtitles (tvr), or films whose moments follow habits.",
)
@click.option("--videos", type=int, help="Number of videos.  [default: 2000]")
@click.option("--queries", type=int, help="Number of queries: 80 % train, 5 % val, 15 % test.  [default: 5000]")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same files.")
@click.option(
    "--hard", type=float, help="Difficulty from 0 (a linear matcher suffices) to 1 (nothing does).  [default: 0.5]"
)
@click.option("--bias", type=float, help="Films: share of the moments placed by habit, from 0 to 1.  [default: 0.9]")
@click.option("--verb-bias", type=float, help="Films: share of the actions with a habit of their own.  [default: 1]")
@click.option("--pool", type=int, help="Films: videos searched per query of the split mvmr.  [default: 50]")
@click.option("--video-dim", type=int, help="Dimensions of a clip's video feature.  [default: 256; films: 128]")
@click.option("--text-dim", type=int, help="Dimensions of subtitle and query features.  [default: 192; films: 96]")
@click.option("--force", is_flag=True, help="Replace the files of a folder that is not empty.")
@options.as_json
def command(target: str, like: str, seed: int, force: bool, as_json: bool, **given: Any) -> None:
    """Make a simulated corpus of any size with known truth, TVR's statistics, and the files of TVR and TVR-Ranking.

    \b
    The standard corpus, and a model trained on it:
      momentseek simulate --seed 0 --out simulation
      momentseek train reloclnet --data simulation
    A small one, to try something within a second:
      momentseek simulate --videos 50 --queries 100 --out small
    Films in which actions happen at habitual times, and a test set in which they do not:
      momentseek simulate --like charades --out films
      momentseek train tan2d --data films

    It is a simulation: its numbers say how well something learns, but nothing about real videos.
    """
    optional_module("h5py", "train")
    chosen = {"seed": seed, **{name: value for name, value in given.items() if value is not None}}
    foreign = ("bias", "verb_bias", "pool") if like == "tvr" else ("queries",)
    if wrong := [name for name in foreign if name in chosen]:
        raise MomentseekError(f"--{wrong[0].replace('_', '-')} is not a setting of --like {like}; leave it out")
    check_target(Path(target), force)
    if like == "tvr":
        _simulate_series(target, SimulationSettings(**chosen), force, as_json)
    else:
        _simulate_films(target, GroundingSettings(like=like, **chosen), force, as_json)


def _simulate_series(target: str, settings: SimulationSettings, force: bool, as_json: bool) -> None:
    with progress_bar(step_count(settings), "simulating") as advance:
        report = simulate(target, settings, force=force, progress=advance)
    if as_json:
        options.echo_json(report.as_json())
    else:
        click.echo(report.as_text())
    options.say(f"wrote {target}: {count(settings.videos, 'video')}, {count(settings.queries, 'query', 'queries')}")


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
