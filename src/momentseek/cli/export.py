"""``momentseek export``: write a trained model as ONNX, so that searching with it needs no torch."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.core.errors import optional_module


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path())
@click.option("--out", required=True, type=click.Path(), metavar="FOLDER", help="The folder to write.")
@click.option(
    "--data",
    type=click.Path(),
    metavar="DIR",
    help="The data that the model was trained on; they say which encoders it needs. Default: where they were then.",
)
@click.option(
    "--window",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For models that stretch whole videos to a few clips (tan2d, mdd, mmn, …): the longest video that is "
    "read at once; longer ones are cut into windows that overlap. Default: the length that 95 % of the training videos "
    "do not exceed; mmn and crocs cut longer videos into windows of the training videos' median length.",
)
@options.force
@options.as_json
def command(checkpoint: str, out: str, data: str | None, window: float | None, force: bool, as_json: bool) -> None:
    """Write a trained model as a folder that a library can use.

    xml and reloclnet, mmn, crocs and g2l make a library's vectors (`momentseek add --model`); tan2d, mdd, cet, tcn_dcm,
    ctrl, acrn, ablr, scdm, drn and tsp_prl, which read query and video together, re-rank what a library finds
    (`momentseek search --rerank`).

    CHECKPOINT is a file that `momentseek train` wrote, or the folder of a training run, whose best checkpoint is used.
    The folder written has the model's graphs as ONNX, compared with the model in torch beforehand, and model.json. A
    model can serve a library only if its features were made by Momentseek's encoders (`momentseek data features`): the
    library must make the same features of new videos.

    \b
    A model for your own videos:
      momentseek export films-xml --out films-model
      momentseek add ~/Videos --library films-trained --model films-model
    One that re-ranks:
      momentseek export films-tan2d-run --out films-tan2d
      momentseek search --library films --rerank films-tan2d 'she opens the letter'
    """
    optional_module("torch", "train")
    from momentseek.models.export.checkpoints import export_checkpoint

    done, missing = export_checkpoint(checkpoint, out, data=data, window=window, force=force)
    if as_json:
        found = {"folder": str(done.folder), "fingerprint": done.fingerprint, "bytes": done.bytes}
        more = {} if missing is None else {"serves_libraries": not missing}
        options.echo_json({**found, "difference": done.difference, **more})
    else:
        click.echo(f"{done.folder}: {done.model}, {done.bytes / 1e6:.1f} MB, within {done.difference:.0e} of torch")
    if missing:
        options.say(f"note: {missing}")
