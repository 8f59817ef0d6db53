"""``momentseek export``: write a trained model as ONNX, so that searching with it needs no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.models.features.data import Data
from momentseek.recognition.exported.manifest import sources_of

if TYPE_CHECKING:
    from momentseek.models.export.writing import ExportReport
    from momentseek.models.training.checkpoint import Checkpoint
    from momentseek.recognition.exported.manifest import EncoderRef


Lengths = tuple[float | None, float | None]


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
    from pathlib import Path

    optional_module("torch", "train")
    from momentseek.models.export.graphs import check_window
    from momentseek.models.export.writing import export
    from momentseek.models.training.checkpoint import is_captioner, load_checkpoint

    if is_captioner(checkpoint):
        if window is not None:
            raise MomentseekError("a captioner is given moments, whatever their length; leave out --window")
        _export_captioner(checkpoint, data, out, force, as_json)
        return
    loaded = load_checkpoint(checkpoint)
    if window is not None:
        check_window(loaded.model, loaded.config.model)
    folder = data or loaded.config.data.path
    encoders, clip_seconds, (usual, middling), note = _sources(folder, loaded, asked=data is not None)
    trained = {
        "step": loaded.step,
        "measure": loaded.config.training.measure,
        "value": loaded.value,
        "data": loaded.fingerprint,
        "version": loaded.version,
    }
    done = export(
        loaded.model,
        loaded.config.model,
        Path(out),
        encoders=encoders,
        clip_seconds=clip_seconds,
        end_time=loaded.config.training.end_time,
        window=window or usual,
        cut=None if window else middling,
        nms=loaded.config.training.nms,
        trained=trained,
        force=force,
    )
    _print_report(done, loaded.config.model, {"serves_libraries": not note} if as_json else None)
    if note:
        options.say(f"note: {note}")


def _export_captioner(checkpoint: str, data: str | None, out: str, force: bool, as_json: bool) -> None:
    """Write a captioner's graphs."""
    from pathlib import Path

    from momentseek.models.export.captioner import export_captioner
    from momentseek.models.training.checkpoint import load_captioner

    loaded = load_captioner(checkpoint)
    folder, encoders, clip_seconds = data or loaded.config.data.path, {}, 1.5
    try:
        with Data.open(folder) as opened:
            encoders, clip_seconds = sources_of(opened.path), opened.clip_seconds
    except MomentseekError:
        if data is not None:
            raise
    trained = {"step": loaded.step, "value": loaded.value, "data": loaded.fingerprint, "version": loaded.version}
    done = export_captioner(
        loaded.model,
        loaded.config.model,
        Path(out),
        encoders=encoders,
        clip_seconds=clip_seconds,
        trained=trained,
        force=force,
    )
    _print_report(done, loaded.config.model, {} if as_json else None)


def _print_report(done: ExportReport, model: str, more: dict[str, Any] | None) -> None:
    """Print what was written: as JSON, with more values, or as a line if there are None."""
    import json

    if more is not None:
        found = {"folder": str(done.folder), "fingerprint": done.fingerprint, "bytes": done.bytes}
        click.echo(json.dumps({**found, "difference": done.difference, **more}, indent=2))
    else:
        size = f"{done.bytes / 1e6:.1f} MB"
        click.echo(f"{done.folder}: {model}, {size}, within {done.difference:.0e} of torch")


def _sources(folder: str, trained: Checkpoint, *, asked: bool) -> tuple[dict[str, EncoderRef], float, Lengths, str]:
    """The encoders of the data's features, the seconds of a clip, of long and of median videos, and what is missing."""
    from momentseek.models.export.graphs import longest_video
    from momentseek.models.training.checkpoint import refuse_other_dims

    unusable = "this export cannot serve a library: "
    if not folder:
        return {}, 1.5, (None, None), f"{unusable}the checkpoint does not say where its data are; give --data DIR"
    try:
        with Data.open(folder) as data:
            same = trained.imported or trained.was_trained_on(data)
            encoders, clip_seconds = sources_of(data.path), data.clip_seconds
            data.use(trained.model.config.modalities)
            split = trained.config.data.train
            if trained.imported:  # public weights know no data: only the widths can be compared
                refuse_other_dims(trained, data, split if split in data.splits else next(iter(data.splits)), folder)
            known = same and split in data.splits
            usual = (longest_video(data, split), longest_video(data, split, 0.5)) if known else (None, None)
    except MomentseekError as e:
        if asked:
            raise
        return {}, 1.5, (None, None), f"{unusable}{e}"
    if not same:
        raise MomentseekError(f"{folder}: is not what the model was trained on; give those data (--data DIR)")
    if not encoders:
        return {}, clip_seconds, usual, f"{unusable}{folder} does not say which encoders made its features"
    return encoders, clip_seconds, usual, ""
