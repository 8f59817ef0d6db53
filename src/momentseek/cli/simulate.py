"""``momentseek simulate``: make a corpus to train and test on."""

from __future__ import annotations

import click

from momentseek.cli import options


@click.command()
@click.option("--out", "-o", "target", required=True, metavar="DIR", help="The folder to make.")
@click.option("--videos", type=int, default=2000, show_default=True, help="How many videos.")
@click.option(
    "--queries", type=int, default=5000, show_default=True, help="How many queries: 80 % train, 5 % val, 15 % test."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same files.")
@click.option(
    "--hard", type=float, default=0.5, show_default=True, help="From 0 (a linear matcher will do) to 1 (nothing will)."
)
@click.option("--video-dim", type=int, default=256, show_default=True, help="Dimensions of a clip's video feature.")
@click.option("--text-dim", type=int, default=192, show_default=True, help="Dimensions of subtitle and query features.")
@click.option("--force", is_flag=True, help="Replace the files of a folder that is not empty.")
@options.as_json
def command(
    target: str,
    videos: int,
    queries: int,
    seed: int,
    hard: float,
    video_dim: int,
    text_dim: int,
    force: bool,
    as_json: bool,
) -> None:
    """Make a corpus whose every truth is known: TVR-like statistics, the files of TVR and TVR-Ranking, any size.

    \b
    The standard corpus, and a model trained on it:
      momentseek simulate --seed 0 --out simulation
      momentseek train reloclnet --data simulation
    A small one, to try something within a second:
      momentseek simulate --videos 50 --queries 100 --out small

    It is a simulation: its numbers say how well something learns, and nothing about real videos.
    """
    import json
    from pathlib import Path

    from momentseek.encoders.progress import Progress
    from momentseek.optional import optional_module
    from momentseek.simulate import Settings, simulate
    from momentseek.simulate.folder import check_target
    from momentseek.simulate.simulation import steps
    from momentseek.tables import count

    optional_module("h5py", "train")
    settings = Settings(videos, queries, seed, hard, video_dim, text_dim)
    check_target(Path(target), force)
    with Progress(steps(settings), "simulating") as bar:
        report = simulate(target, settings, force=force, progress=bar.advance)
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=2))
        return
    click.echo(report.as_text())
    options.say(f"wrote {target}: {count(settings.videos, 'video')}, {count(settings.queries, 'query', 'queries')}")
