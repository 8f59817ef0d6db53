"""``momentseek predict``: answer the queries of a split with a trained model."""

from __future__ import annotations

from pathlib import Path

import click

from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.cli.terminal import draw
from momentseek.core.errors import optional_module
from momentseek.core.reports import count
from momentseek.measuring.formats import write_bytes
from momentseek.measuring.formats.files import writer_for


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--data", "folder", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--split", required=True, metavar="NAME", help="The split whose queries are answered.")
@click.option(
    "--out", "-o", "target", required=True, metavar="RUN", help="The run to write: .jsonl, or the format of --to."
)
@click.option("--to", metavar="FORMAT", help="The format of RUN. Default: by its file ending.")
@click.option(
    "--task",
    type=click.Choice(["VCMR", "SVMR", "VR"]),
    help="Find moments in all videos, moments in the right video, or videos. Default: VCMR for a split with pools, "
    "else as in training.",
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
    help="How many of these videos are searched per query. Default: the model's setting `videos`; for pools, all.",
)
@click.option("--whole-corpus", is_flag=True, help="Search all videos, although the split has a pool for each query.")
@click.option("--nms", type=Number(0, 1), help="Drop moments that overlap a better one by more than this IoU.")
@click.option("--device", default="auto", show_default=True, help="Where to compute: cpu, cuda, ….")
@options.force
@options.as_json
@options.quiet
def command(
    checkpoint: str,
    folder: str,
    split: str,
    target: str,
    to: str | None,
    task: str | None,
    top: int | None,
    videos: str | None,
    first: int | None,
    whole_corpus: bool,
    nms: float | None,
    device: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer the queries of a split with the model of CHECKPOINT: a file, or the folder of a training run.

    \b
    Predict and evaluate:
      momentseek predict runs/reloclnet --data simulation --split test --out test.jsonl
      momentseek evaluate test.jsonl --truth simulation/test.json
    Re-rank the videos that another model found:
      momentseek predict runs/conquer --videos runs/xml --data simulation --split test --out test.jsonl
    Search each query's pool with one model, then with another the five videos that the first ranks best (MVMR):
      momentseek predict runs/crocs --data films --split mvmr --out mvmr.jsonl
      momentseek predict runs/mdd --videos runs/crocs --first 5 --data films --split mvmr --out mvmr.jsonl
      momentseek evaluate mvmr.jsonl --truth films/mvmr.json --protocol mvmr

    The first two commands give the figures of report.json (-m for measures other than NDCG). With --protocol
    tvr-ranking, evaluate gives those of TVR-Ranking's evaluator: gain 2^rel-1 instead of rel, IoU > instead of >=.
    """
    import json

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.models.training.prediction import predict_split

    options.check_targets([checkpoint, videos], [target], force)
    writer = writer_for(to, target, "run")
    prediction = predict_split(
        checkpoint,
        folder,
        split,
        task=task,
        top=top,
        videos=videos,
        first=first,
        whole_corpus=whole_corpus,
        nms=nms,
        device=device,
        progress=None if quiet else StageLine(),
    )
    run, fewer, in_pools = prediction.run, prediction.queries_with_fewer_videos, prediction.in_pools
    write_bytes(Path(target), writer.to_bytes((run,)))
    queries = count(len(run), "query", "queries")
    if fewer and not quiet:
        places = [*(["the pool"] if in_pools else []), *([prediction.first_stage] if prediction.first_stage else [])]
        options.say(
            f"note: {fewer:,} of {queries} searched fewer than {count(first or 0, 'video')}: "
            f"{' or '.join(places) or 'the corpus'} had no more"
        )
    if as_json:
        about = {"checkpoint": checkpoint, "model": prediction.model, "step": prediction.step, "split": split}
        figures = {
            "task": prediction.task,
            "queries": len(run),
            "moments": len(run.start),
            "pools": in_pools,
            "queries_with_fewer_videos": fewer,
            "simulated": prediction.simulated,
        }
        click.echo(json.dumps({**about, **figures, "run": target}, indent=2))
        return
    what = count(len(run.start), "video" if prediction.task == "VR" else "moment")
    asked = queries + (", each in its pool" if in_pools else "")
    options.say(f"wrote {target}: {prediction.model}, {prediction.task}; {asked}, {what}")


class StageLine:
    """Shows the stage of a prediction and how much of it is done, on a terminal."""

    def __init__(self) -> None:
        import sys

        self._terminal = sys.stderr.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._terminal:
            draw("\r", err=True)
            click.echo(f"{stage}: {done:,} of {total:,}  " + ("\n" if done >= total else ""), err=True, nl=False)
