"""``momentseek import-checkpoint``: public weights as a training run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from momentseek.cli import options
from momentseek.models import require_training


@click.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--model", required=True, metavar="NAME", help="The model that the weights belong to.")
@click.option("--out", required=True, type=click.Path(), metavar="RUN", help="The folder of the run to make.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that the weights do not tell, such as heads=8 or max_clips=128; may be repeated.",
)
@options.force
@options.as_json
def command(file: str, model: str, out: str, settings: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Turn the weights of a model's public implementation into a training run.

    FILE holds a state dict under the public implementation's own names, as a safetensors file or as one that torch.save
    wrote; nothing in it is run. What sizes tell is read off them, what they do not is said. The run can be given to
    `predict`, `explain` and `export`, and training can begin from it (train --set begin=RUN). It computes what the
    public code does, its oversights included; docs/models.md names them.

    \b
    The authors' MMN for Charades-STA, on your copy of the features:
      momentseek import-checkpoint pool_model_14e.pth --model mmn --out mmn-charades
      momentseek predict mmn-charades --data charades --split test --task SVMR --out mmn.jsonl
      momentseek evaluate mmn.jsonl --truth charades_sta_test.txt
    One whose clips the weights do not tell:
      momentseek import-checkpoint tacos.pth --model mmn --set max_clips=128 --out mmn-tacos
    """
    require_training()
    from momentseek.models.training.warm_start import import_checkpoint

    done = import_checkpoint(Path(file), model, Path(out), settings, force=force)
    if as_json:
        options.echo_json(dataclasses.asdict(done))
        return
    click.echo(f"wrote {done.out}: {done.model} with {done.parameters:,} parameters, from {done.source}")
    if done.assumed:
        assumed = ", ".join(f"{key}={value}" for key, value in done.assumed.items())
        options.say(f"note: settings that the weights do not tell are the authors': {assumed} (--set changes them)")
    if done.skipped:
        options.say(f"note: {len(done.skipped):,} tensors have no place in the model, such as {done.skipped[0]}")
