"""``momentseek predict``, ``explain``, ``export`` and ``import-checkpoint``: use a trained model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.cli.progress import StageLine
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.reports import count
from momentseek.measuring.formats.files import writer_for
from momentseek.models import require_training

if TYPE_CHECKING:
    from momentseek.models.training.prediction import Prediction


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--data", required=True, metavar="DIR", help="Data folder (contains a data.toml).")
@click.option("--split", required=True, metavar="NAME", help="Split whose queries to answer.")
@click.option(
    "--out", "-o", required=True, metavar="RUN", help="Write the run to this file: .jsonl, or the format of --to."
)
@click.option("--to", metavar="FORMAT", help="Format of RUN. Default: by its file ending.")
@click.option(
    "--task",
    type=click.Choice(["VCMR", "SVMR", "VR"]),
    help="Find moments in all videos (VCMR), moments in the right video (SVMR), or videos (VR). Default: VCMR for a "
    "split with pools, else as in training.",
)
@click.option(
    "--top",
    "-k",
    type=click.IntRange(min=1),
    help="Predictions per query. Default: 40 (50 for a split with pools), or as many as the measures of the training "
    "report look at.",
)
@click.option(
    "--videos",
    metavar="CHECKPOINT|RUN",
    help="Search only the videos that another model or a run found. Default: as in training.",
)
@click.option(
    "--first",
    type=click.IntRange(min=1),
    metavar="N",
    help="Search the first N of these videos per query. Default: the model's setting `videos`; for pools, all.",
)
@click.option("--whole-corpus", is_flag=True, help="Search all videos even if the split has a pool for each query.")
@click.option("--nms", type=Number(0, 1), help="Drop moments that overlap a better one by more than this IoU.")
@click.option(
    "--summary",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Answer with the most salient clips of each video, up to this share of its time, instead of moments.",
)
@click.option("--device", default="auto", show_default=True, help="Device to compute on: cpu, cuda, ….")
@options.force
@options.as_json
@options.quiet
def predict(
    checkpoint: str,
    data: str,
    split: str,
    out: str,
    to: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> None:
    """Answer the queries of a split with the model in CHECKPOINT: a file, or the folder of a training run.

    \b
    Predict and evaluate:
      momentseek predict runs/reloclnet --data simulation --split test --out test.jsonl
      momentseek evaluate test.jsonl --truth simulation/test.json
    Re-rank the videos that another model found:
      momentseek predict runs/conquer --videos runs/xml --data simulation --split test --out test.jsonl
    Search each query's pool with one model, then its five best videos with another (MVMR):
      momentseek predict runs/crocs --data films --split mvmr --out mvmr.jsonl
      momentseek predict runs/mdd --videos runs/crocs --first 5 --data films --split mvmr --out mvmr.jsonl
      momentseek evaluate mvmr.jsonl --truth films/mvmr.json --protocol mvmr

    The first two commands reproduce the figures in report.json (add -m for measures other than NDCG). With --protocol
    tvr-ranking, evaluate computes what TVR-Ranking's evaluator does: gain 2^rel-1 instead of rel, IoU > instead of >=.
    """
    require_training()
    from momentseek.models.training.prediction import predict_split

    options.check_targets([checkpoint, how["videos"]], [out], force)
    writer = writer_for(to, out, "run")
    found = predict_split(checkpoint, data, split, **how, progress=StageLine(quiet=quiet))
    write_bytes(Path(out), writer.to_bytes((found.run,)))
    if found.queries_with_fewer_videos and not quiet:
        options.say(_fewer_videos(found, how["first"] or 0))
    if as_json:
        about = {"checkpoint": checkpoint, "model": found.model, "step": found.step, "split": split}
        options.echo_json({**about, **found.figures(), "run": out})
        return
    what = count(len(found.run.start), "video" if found.task == "VR" else "moment")
    asked = count(len(found.run), "query", "queries") + (", each in its pool" if found.in_pools else "")
    if found.joined_streams:
        options.say("note: the public code normalises each file of video features; import with --set streams=N,N,…")
    options.say(f"wrote {out}: {found.model}, {found.task}; {asked}, {what}")


def _fewer_videos(found: Prediction, first: int) -> str:
    """Return a note that some queries searched fewer videos than requested."""
    places = [*(["the pool"] if found.in_pools else []), *([found.first_stage] if found.first_stage else [])]
    queries = count(len(found.run), "query", "queries")
    return (
        f"note: {found.queries_with_fewer_videos:,} of {queries} searched fewer than {count(first, 'video')}: "
        f"{' or '.join(places) or 'the corpus'} had no more"
    )


FIGURES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path())
@click.option("--data", required=True, type=click.Path(), metavar="DIR", help="Data folder (contains a data.toml).")
@click.option("--query", required=True, metavar="ID|TEXT", help="Id of a query of the split, or any text (see above).")
@click.option("--split", default="val", show_default=True, metavar="NAME", help="Split to search.")
@click.option(
    "--top", "-k", type=click.IntRange(1, 20), default=3, show_default=True, help="Number of moments to show."
)
@click.option(
    "--out",
    "-o",
    type=click.Path(),
    metavar="FILE",
    help="Write a figure (.png, .svg, .pdf) or numbers (.json) to FILE.",
)
@options.force
@options.as_json
def explain(
    checkpoint: str, data: str, query: str, split: str, top: int, out: str | None, force: bool, as_json: bool
) -> None:
    """Show why a trained model (xml, reloclnet, slate) answers a query as it does.

    It shows the weight of each word for pictures and for subtitles. For each of the best moments it shows the
    similarity of the query to the video's clips, the responses of the learned start and end filters, and the moment
    next to the truth. It also shows the right video if the model missed it. For Slate the curves are those of what,
    start and end. A text that is not a query of the split works only if the data name the encoder of the queries'
    features (`momentseek data features`).

    \b
    A figure, and the numbers in it:
      momentseek explain runs/xml --data simulation --split val --query 4100 --out why.png
      momentseek explain runs/xml --data films-data --query 'the flower on screen' --json
    """
    if out is None and not as_json:
        raise MomentseekError("there is nowhere to draw; name a file (--out why.png), or ask for the numbers (--json)")
    kind = Path(out).suffix.lower() if out is not None else ".json"
    if kind not in (*FIGURES, ".json"):
        raise MomentseekError(f"{out}: its ending names no known format; use one of {', '.join(FIGURES)}, .json")
    require_training()
    if kind in FIGURES:
        optional_module("matplotlib", "plots")
    options.check_targets([checkpoint], [out], force)
    from momentseek.models.explain import explain_query, save

    found = explain_query(checkpoint, data, query, split=split, k=top)
    text = json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n"
    if out is not None and kind == ".json":
        write_bytes(Path(out), text.encode())
    elif out is not None:
        save(found, Path(out))
    if as_json:
        click.echo(text, nl=False)
    else:
        options.say(f"wrote {out}")


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path())
@click.option("--out", required=True, type=click.Path(), metavar="FOLDER", help="Folder to write.")
@click.option(
    "--data",
    type=click.Path(),
    metavar="DIR",
    help="Data folder that the model was trained on, which names its encoders. Default: its path at training time.",
)
@click.option(
    "--window",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For models that resample whole videos to a few clips (tan2d, mdd, mmn, …): read videos up to this length at "
    "once, and longer ones in overlapping windows of this length. Default: the 95th percentile of the training videos' "
    "lengths; mmn and crocs read longer videos in windows of their median length.",
)
@options.force
@options.as_json
def export(checkpoint: str, out: str, data: str | None, window: float | None, force: bool, as_json: bool) -> None:
    """Export a trained model as a folder that a library can use.

    xml, reloclnet, mmn, crocs and g2l compute a library's vectors (`momentseek add --model`). tan2d, mdd, cet, tcn_dcm,
    ctrl, acrn, ablr, scdm, drn, tsp_prl, moment_detr, qd_detr, univtg and spr read query and video together, and
    re-rank what a library finds (`momentseek search --rerank`).

    CHECKPOINT is a file that `momentseek train` wrote, or the folder of a training run, whose best checkpoint is used.
    The exported folder contains model.json and the model as ONNX graphs, which are first compared with the model in
    torch. A library can use a model only if its features come from Momentseek's encoders (`momentseek data features`),
    because the library must compute the same features of new videos.

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


@click.command("import-checkpoint")
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--model", required=True, metavar="NAME", help="Model that the weights belong to.")
@click.option("--out", required=True, type=click.Path(), metavar="RUN", help="Folder of the training run to write.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting that does not follow from the weights, such as heads=8 or max_clips=128; repeatable.",
)
@click.option(
    "--words",
    type=click.Path(),
    metavar="FILE",
    help="Vocabulary of mmt or wssl: a JSON list of words, or an object that maps words to numbers.",
)
@options.force
@options.as_json
def import_weights(
    file: str, model: str, out: str, settings: tuple[str, ...], words: str | None, force: bool, as_json: bool
) -> None:
    """Convert the weights of a model's public implementation into a training run.

    FILE is a state dict with the public implementation's parameter names, in safetensors format or written by
    torch.save; no code in it is executed. Settings that follow from tensor sizes are set from them; the others take the
    authors' values and are reported. `predict`, `explain` and `export` accept the run, and training can start from it
    (train --set begin=RUN). It computes what the public code computes, including its errors; docs/models.md lists them.

    \b
    The authors' MMN for Charades-STA, on your copy of the features:
      momentseek import-checkpoint pool_model_14e.pth --model mmn --out mmn-charades
      momentseek predict mmn-charades --data charades --split test --task SVMR --out mmn.jsonl
      momentseek evaluate mmn.jsonl --truth charades_sta_test.txt
    Weights that do not imply the number of clips:
      momentseek import-checkpoint tacos.pth --model mmn --set max_clips=128 --out mmn-tacos
    A captioner, whose vocabulary is in a separate file:
      momentseek import-checkpoint model.chkpt --model mmt --words word2idx.json --out mmt
    """
    require_training()
    from momentseek.models.training.warm_start import import_checkpoint

    vocabulary = None if words is None else Path(words)
    done = import_checkpoint(Path(file), model, Path(out), settings, words=vocabulary, force=force)
    if as_json:
        options.echo_json(dataclasses.asdict(done))
        return
    click.echo(f"wrote {done.out}: {done.model} with {done.parameters:,} parameters, from {done.source}")
    if done.assumed:
        assumed = ", ".join(f"{key}={value}" for key, value in done.assumed.items())
        options.say(f"note: settings that do not follow from the weights are the authors': {assumed} (change: --set)")
    if done.skipped:
        options.say(f"note: {len(done.skipped):,} tensors have no place in the model, such as {done.skipped[0]}")
