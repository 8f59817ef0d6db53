"""``momentseek predict``: answer the queries of a split with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.cli.progress import ProgressLines
from momentseek.core.reports import count
from momentseek.measuring.formats import write_bytes
from momentseek.measuring.formats.files import writer_for
from momentseek.models import require_training

if TYPE_CHECKING:
    from momentseek.models.training.prediction import Prediction


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--data", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--split", required=True, metavar="NAME", help="The split whose queries are answered.")
@click.option("--out", "-o", required=True, metavar="RUN", help="The run to write: .jsonl, or the format of --to.")
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
    data: str,
    split: str,
    out: str,
    to: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **how: Any,
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
    options.say(f"wrote {out}: {found.model}, {found.task}; {asked}, {what}")


def _fewer_videos(found: Prediction, first: int) -> str:
    """A note that some queries searched fewer videos than were asked for."""
    places = [*(["the pool"] if found.in_pools else []), *([found.first_stage] if found.first_stage else [])]
    queries = count(len(found.run), "query", "queries")
    return (
        f"note: {found.queries_with_fewer_videos:,} of {queries} searched fewer than {count(first, 'video')}: "
        f"{' or '.join(places) or 'the corpus'} had no more"
    )


class StageLine:
    """Shows the stage of a prediction and how much of it is done."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._lines = ProgressLines(quiet=quiet)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._lines.show(f"{stage}: {done:,} of {total:,}", share=done / max(total, 1))
