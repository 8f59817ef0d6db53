"""``momentseek train``: train a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options

if TYPE_CHECKING:
    from momentseek.features import Data
    from momentseek.training import TrainConfig


@click.command()
@click.argument("model", metavar="MODEL", required=False)
@click.option("--data", "folder", metavar="DIR", help="The data folder: one with a data.toml.")
@click.option(
    "--preset", metavar="NAME", help="A paper's settings; --list names them. Default: what the data name, if any."
)
@click.option("--config", "file", metavar="FILE", help="Settings from a TOML file instead.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting; may be given several times."
)
@click.option("--out", "-o", "target", metavar="RUN", help="The folder of the run. Default: runs/MODEL-SPLIT.")
@click.option("--seeds", type=click.IntRange(min=1), help="Train this often with different seeds, and give mean ± sd.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was stopped; needs nothing else.")
@options.force
@click.option("--list", "listing", is_flag=True, help="List models, presets and settings.")
@options.as_json
@options.quiet
def command(
    model: str | None,
    folder: str | None,
    preset: str | None,
    file: str | None,
    settings: tuple[str, ...],
    target: str | None,
    seeds: int | None,
    resume: str | None,
    force: bool,
    listing: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train MODEL on the data of a folder, and keep its best checkpoint.

    \b
    On simulated data, a few minutes on one core:
      momentseek simulate --out simulation
      momentseek train reloclnet --data simulation --out runs/reloclnet
    With a paper's settings, its shorter training lists, and three seeds:
      momentseek train --preset tvr-ranking-reloclnet --data tvr-ranking --set train=train_top20 --seeds 3
    Another learning rate, only the video, half an hour:
      momentseek train xml --data simulation --set lr=5e-4 --set modalities=video --set minutes=30
    CroCs' second stage, from the first one's weights and on negatives that are hard for it:
      momentseek train crocs --data films --set begin=runs/crocs --set lr=1e-4 --set hard_videos=8 \\
        --set hard_queries=16 --out runs/crocs2
    Go on after Ctrl-C, or after the machine went down:
      momentseek train --resume runs/reloclnet
    By several processes that share the work:
      torchrun --nproc-per-node 2 -m momentseek train reloclnet --data simulation --out runs/two

    The run's folder gets config.toml, log.csv and an event file for TensorBoard, best.safetensors (by the measure
    `training.measure` on the validation split), last.safetensors and, at the end, report.json.
    """
    from momentseek.errors import MomentseekError
    from momentseek.optional import optional_module

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.features import Data

    if listing:
        click.echo(_listing(model))
        return
    if resume is not None:
        if target is not None or force:
            raise MomentseekError("--resume goes on in the run's own folder; leave out --out and --force")
        _resume(resume, model, folder, preset, file, settings, seeds, as_json, quiet)
        return
    if folder is None:
        raise MomentseekError("which data to train on is missing; give a folder with a data.toml (--data DIR)")
    with Data.open(folder) as data:
        config = _config(data, model, preset, file, settings, quiet)
        out = Path(target or Path("runs") / f"{config.model}-{config.data.train}")
        if seeds is None:
            _train(config, data, out, False, force, as_json, quiet)
        else:
            _seeds(config, data, out, seeds, force, as_json, quiet)


def _config(
    data: Data, model: str | None, preset: str | None, file: str | None, settings: tuple[str, ...], quiet: bool
) -> TrainConfig:
    from dataclasses import replace

    from momentseek.errors import MomentseekError
    from momentseek.training.config import read
    from momentseek.training.presets import configure, table

    if preset and file:
        raise MomentseekError("--preset and --config both say the settings; give one, and change it with --set")
    if not (preset or file or model):
        raise MomentseekError("which model to train is missing; name it (momentseek train xml), or a --preset")
    where = f"preset {preset}" if preset else file or "config"
    if preset:
        sections = table(preset)
    elif file:
        sections = read(Path(file))
    elif data.preset:
        if not quiet:
            options.say(f"training with the preset {data.preset}, as the data ask for (--preset names another)")
        sections, where = table(data.preset), f"preset {data.preset}"
    else:
        sections = {}
    config = configure(sections, model, settings, where)
    return replace(config, data=replace(config.data, path=data.location))


def _train(config: TrainConfig, data: Data, out: Path, resume: bool, force: bool, as_json: bool, quiet: bool) -> None:
    import json
    import sys

    from momentseek.cli.training_line import TrainingLine, duration
    from momentseek.training import train

    line = TrainingLine(config.training.measure, quiet=quiet)
    outcome = train(config, data, out, resume, tell=line, force=force)
    if outcome.stopped == "interrupted":
        command = options.command_line(["train", "--resume", str(out)])
        options.say(f"stopped at step {outcome.step:,} of {outcome.steps:,}, and saved; go on with: {command}")
        sys.exit(130)
    if not outcome.report:  # another process writes
        return
    if as_json:
        click.echo(json.dumps(outcome.report, indent=2, ensure_ascii=False))
        return
    why = {"done": "done", "patience": "no better for a while", "time": "time is up"}[outcome.stopped]
    best = (
        f"{config.training.measure} {outcome.best:.4f} at step {outcome.best_step:,}"
        if outcome.best is not None
        else "no gain"
    )
    options.say(f"{why} after {outcome.step:,} steps, {duration(outcome.seconds)}; best {best}; wrote {out}")
    click.echo(_scores([outcome.report], data))


def _seeds(config: TrainConfig, data: Data, out: Path, count: int, force: bool, as_json: bool, quiet: bool) -> None:
    import json
    import sys

    from momentseek.atomic import write_bytes
    from momentseek.cli.training_line import TrainingLine
    from momentseek.training.spread import spreads, train_seeds

    def begin(seed: int, folder: Path) -> None:
        if not quiet:
            options.say(f"seed {seed}: {folder}")

    line = TrainingLine(config.training.measure, quiet=quiet)
    reports = train_seeds(config, data, out, count, tell=line, begin=begin, force=force)
    if len(reports) < count:
        how = "the same command without --force" if force else "the same command"
        options.say(f"stopped, and saved; {how} goes on ({len(reports)} of {count} seeds are done)")
        sys.exit(130)
    result = {
        split: {name: {"mean": s.mean, "sd": s.sd if count > 1 else None} for name, s in scores.items()}
        for split, scores in spreads(reports).items()
    }
    text = json.dumps({"seeds": [r["seed"] for r in reports], "scores": result}, indent=2, ensure_ascii=False)
    write_bytes(out / "seeds.json", (text + "\n").encode())
    click.echo(text if as_json else _scores(reports, data))


def _resume(
    target: str,
    model: str | None,
    folder: str | None,
    preset: str | None,
    file: str | None,
    settings: tuple[str, ...],
    seeds: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    from dataclasses import replace

    from momentseek.errors import MomentseekError
    from momentseek.features import Data
    from momentseek.training.setup import saved_config

    if model or preset or file or seeds:
        raise MomentseekError("--resume goes on with the run's own model and settings; leave the others out")
    config = saved_config(Path(target)).changed(settings)
    if not (folder or config.data.path):
        raise MomentseekError(f"{target}: does not say where its data lie; give the folder (--data DIR)")
    with Data.open(folder or config.data.path) as data:
        config = replace(config, data=replace(config.data, path=data.location))
        _train(config, data, Path(target), True, False, as_json, quiet)


def _scores(reports: list[Any], data: Data) -> str:
    from momentseek.tables import text_table
    from momentseek.training.spread import spreads

    found = spreads(reports)
    names = list(dict.fromkeys(name for scores in found.values() for name in scores))
    rows = [[name, *(str(found[split][name]) for split in found)] for name in names]
    note = f"{data.name}, a simulation\n" if data.simulated else f"{data.name}\n"
    return note + text_table(["measure", *found], rows)


def _listing(model: str | None) -> str:
    import dataclasses

    from momentseek.models import MODELS, entry
    from momentseek.tables import text_table
    from momentseek.training.config import Source, Training
    from momentseek.training.presets import names, table

    if model is None:
        models = [[e.name, e.summary] for e in MODELS.values()]
        presets = [[name, str(table(name).get("about", ""))] for name in names()]
        return "\n\n".join(
            [
                text_table(["model", "what it is"], sorted(models), align="ll"),
                text_table(["preset", "what it is for"], presets, align="ll"),
                "`momentseek train MODEL --list` lists the settings of a model.",
            ]
        )
    sections = {"model": entry(model).config, "training": Training, "data": Source}
    rows = [
        [f"{section}.{f.name}", "" if f.default in (None, dataclasses.MISSING) else str(f.default)]
        for section, kind in sections.items()
        for f in dataclasses.fields(kind)
    ]
    return text_table(["setting", "default"], rows, align="ll")
