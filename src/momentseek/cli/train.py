"""``momentseek train``: train a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options
from momentseek.cli.progress import TrainingLine, duration
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.reports import text_table
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.models.training.folder import TrainingOutcome


@click.command()
@click.argument("model", metavar="MODEL", required=False)
@click.option("--data", "folder", metavar="DIR", help="The data folder: one with a data.toml.")
@click.option(
    "--preset",
    metavar="NAME",
    help="A paper's settings; --list names them. Default: the data's preset, if any.",
)
@click.option("--config", "file", metavar="FILE", help="Settings from a TOML file instead of a preset.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting; may be given several times."
)
@click.option("--out", "-o", "target", metavar="DIR", help="The folder of the training run. Default: runs/MODEL-SPLIT.")
@click.option("--seeds", type=click.IntRange(min=1), help="Train with this many seeds, and report mean ± sd.")
@click.option("--resume", metavar="DIR", help="Continue the training run in this folder; no other option is needed.")
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
    """Train MODEL on the data of a folder, and keep the best checkpoint.

    \b
    On simulated data, a few minutes on one core:
      momentseek simulate --out simulation
      momentseek train reloclnet --data simulation --out runs/reloclnet
    With a paper's settings, shorter training lists, and three seeds:
      momentseek train --preset tvr-ranking-reloclnet --data tvr-ranking --set train=train_top20 --seeds 3
    With another learning rate, video features only, for half an hour:
      momentseek train xml --data simulation --set lr=5e-4 --set modalities=video --set minutes=30
    The second stage of CroCs, from the weights of the first and with negatives that are hard for it:
      momentseek train crocs --data films --set begin=runs/crocs --set lr=1e-4 --set hard_videos=8 \\
        --set hard_queries=16 --out runs/crocs2
    A captioner, which describes moments instead of finding them:
      momentseek train mmt --data simulation --out runs/mmt
    Continue after Ctrl-C, or after a crash:
      momentseek train --resume runs/reloclnet
    With several processes that share the work:
      torchrun --nproc-per-node 2 -m momentseek train reloclnet --data simulation --out runs/two

    The folder gets config.toml, log.csv (and an event file where TensorBoard is installed), best.safetensors (by the measure
    `training.measure` on the validation split), last.safetensors and, at the end, report.json.
    """
    import json
    import sys

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.models.training.session import resume_training, train_model, train_model_with_seeds

    if listing:
        click.echo(_listing(model))
        return
    line = TrainingLine(quiet=quiet)
    if resume is not None:
        if target is not None or force:
            raise MomentseekError("--resume continues in the folder itself; leave out --out and --force")
        if model or preset or file or seeds:
            raise MomentseekError(
                "--resume continues with the same model and settings; leave out MODEL, --preset, --config and --seeds"
            )
        _print_outcome(resume_training(resume, data=folder, settings=settings, progress=line), as_json)
        return
    if folder is None:
        raise MomentseekError("there are no data to train on; give a folder with a data.toml (--data DIR)")
    with Data.open(folder) as data:
        if not (preset or file or quiet) and model and data.preset:
            options.say(f"training with the preset {data.preset}, which the data name (--preset chooses another)")
        if seeds is None:
            outcome = train_model(
                model, data=data, preset=preset, config=file, settings=settings, out=target, force=force, progress=line
            )
            _print_outcome(outcome, as_json)
            return

        def announce(seed: int, seed_folder: Path) -> None:
            if not quiet:
                options.say(f"seed {seed}: {seed_folder}")

        several = train_model_with_seeds(
            model, seeds=seeds, data=data, preset=preset, config=file, settings=settings, out=target, force=force,
            progress=line, announce=announce,
        )  # fmt: skip
    if not several.complete:
        how = "the same command without --force" if force else "the same command"
        options.say(f"stopped and saved; {how} continues ({len(several.reports)} of {seeds} seeds are done)")
        sys.exit(130)
    if as_json:
        click.echo(json.dumps(several.as_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(_scores(several.reports))


def _print_outcome(outcome: TrainingOutcome, as_json: bool) -> None:
    import json
    import sys

    if outcome.stopped == "interrupted":
        command = options.command_line(["train", "--resume", str(outcome.folder)])
        options.say(f"stopped at step {outcome.step:,} of {outcome.steps:,} and saved; continue with: {command}")
        sys.exit(130)
    report = outcome.report
    if not report:  # another process writes
        return
    if as_json:
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
        return
    why = {"done": "done", "patience": "stopped improving", "time": "time is up"}[outcome.stopped]
    best = (
        f"{report['measure']} {outcome.best:.4f} at step {outcome.best_step:,}" if outcome.best is not None else "none"
    )
    options.say(f"{why} after {outcome.step:,} steps, {duration(outcome.seconds)}; best {best}; wrote {outcome.folder}")
    click.echo(_scores([report]))


def _scores(reports: Sequence[Mapping[str, Any]]) -> str:
    """The table of the reports' scores, mean ± sd where there are several."""
    from momentseek.models.training.session import score_spreads

    scores = score_spreads(reports)
    names = list(dict.fromkeys(name for of_split in scores.values() for name in of_split))
    rows = [[name, *(str(scores[split][name]) for split in scores)] for name in names]
    about = reports[0]["data"]
    note = f"{about['name']}, a simulation\n" if about["simulated"] else f"{about['name']}\n"
    return note + text_table(["measure", *scores], rows)


def _listing(model: str | None) -> str:
    import dataclasses

    from momentseek.models.captioner import CAPTIONERS
    from momentseek.models.registry import MODELS
    from momentseek.models.training.config import DataSettings, TrainingSettings, network_spec
    from momentseek.models.training.presets import preset_names, preset_table

    if model is None:
        models = [[e.name, e.summary] for e in MODELS.values()] + [[e.name, e.summary] for e in CAPTIONERS.values()]
        presets = [[name, str(preset_table(name).get("about", ""))] for name in preset_names()]
        return "\n\n".join(
            [
                text_table(["model", "what it is"], sorted(models), align="ll"),
                text_table(["preset", "what it is for"], presets, align="ll"),
                "`momentseek train MODEL --list` lists the settings of a model.",
            ]
        )
    sections = {"model": network_spec(model).config, "training": TrainingSettings, "data": DataSettings}
    rows = [
        [f"{section}.{f.name}", "" if f.default in (None, dataclasses.MISSING) else str(f.default)]
        for section, kind in sections.items()
        for f in dataclasses.fields(kind)
    ]
    return text_table(["setting", "default"], rows, align="ll")
