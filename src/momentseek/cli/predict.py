"""``momentseek predict``: let a trained model answer the queries of a split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from momentseek.cli import options
from momentseek.cli.numbers import Number
from momentseek.cli.writers import run_writer

POOLED = 50
"""Moments per query of a split with pools, unless told: MVMR's deepest cut-off."""


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--data", "folder", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--split", required=True, metavar="NAME", help="Whose queries to answer.")
@click.option(
    "--out", "-o", "target", required=True, metavar="RUN", help="The run to write: .jsonl, or what --to says."
)
@click.option("--to", metavar="FORMAT", help="The format of RUN. Default: by its ending.")
@click.option(
    "--task",
    type=click.Choice(["VCMR", "SVMR", "VR"]),
    help="Moments in all videos, moments in the right one, or videos. Default: VCMR for a split with pools, else as "
    "trained.",
)
@click.option(
    "--top",
    "-k",
    type=click.IntRange(min=1),
    help="Predictions per query. Default: 40 (50 for a split with pools), or as many as the measures of the run's "
    "report look at.",
)
@click.option(
    "--videos",
    metavar="CHECKPOINT|RUN",
    help="Search only the videos that another model, or a run, found. Default: as trained.",
)
@click.option(
    "--first",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many of the videos found are searched, per query. Default: the model's setting videos; a whole pool.",
)
@click.option("--whole-corpus", is_flag=True, help="Search all videos, though the split says a pool for each query.")
@click.option("--nms", type=Number(0, 1), help="Drop moments that overlap a better one of the video by more.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, ….")
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
    """Answer the queries of a split with the model of CHECKPOINT, a file or the folder of a training run.

    \b
    Predict and evaluate:
      momentseek predict runs/reloclnet --data simulation --split test --out test.jsonl
      momentseek evaluate test.jsonl --truth simulation/test.json
    Re-rank the videos another model found:
      momentseek predict runs/conquer --videos runs/xml --data simulation --split test --out test.jsonl

    Search each query's pool, with one model, or with another in the five videos it puts first (MVMR):
      momentseek predict runs/crocs --data films --split mvmr --out mvmr.jsonl
      momentseek predict runs/mdd --videos runs/crocs --first 5 --data films --split mvmr --out mvmr.jsonl
      momentseek evaluate mvmr.jsonl --truth films/mvmr.json --protocol mvmr

    The first two commands give what the run's report.json says (-m for measures other than NDCG). With --protocol
    tvr-ranking, evaluate gives what TVR-Ranking's evaluator gives: gain 2^rel-1 instead of rel, IoU > instead of >=.
    """
    import json

    from momentseek.optional import optional_module

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.errors import MomentseekError
    from momentseek.features import Data
    from momentseek.formats import Writing, write_bytes
    from momentseek.models.inference import predict
    from momentseek.tables import count
    from momentseek.training import load
    from momentseek.training.setup import device as device_named
    from momentseek.training.setup import refuse_other_dims
    from momentseek.training.validation import depth_for, first_stage

    options.check_targets([checkpoint, videos], [target], force)
    writer = run_writer(to, Path(target))
    found = load(checkpoint)
    training = found.config.training
    with Data.open(folder) as data:
        data.use(found.model.config.modalities)
        data.check([split])
        refuse_other_dims(found, data, split, checkpoint)
        has_pools = data.split(split).truth.pools is not None
        pooled = has_pools and not whole_corpus
        chosen = task or ("VCMR" if has_pools else training.task)
        if chosen != "VCMR" and (videos or first):
            raise MomentseekError(
                f"{chosen} does not search the videos of another model; leave out {'--videos' if videos else '--first'}"
            )
        if chosen == "VR" and not found.model.retrieves:
            raise MomentseekError(
                f"{checkpoint}: {found.config.model} ranks no videos; ask for moments (--task VCMR or SVMR)"
            )
        source = (videos or found.config.data.first_stage) if chosen == "VCMR" else None
        if source and has_pools and whole_corpus and (Path(source).is_dir() or Path(source).suffix == ".safetensors"):
            raise MomentseekError(
                f"{source}: would find videos of each query's pool only; let it write a run (--task VR --whole-corpus) "
                "and give that with --videos"
            )
        few: list[int] = []
        run = predict(
            found.model.to(device_named(device)),
            data,
            data.split(split),
            k=top or max(depth_for(training.report), POOLED if pooled else 1),
            task=chosen,
            videos=first_stage(source, data, split, first or found.model.config.videos) if source else None,
            first=first,
            pools=not whole_corpus,
            nms=training.nms if nms is None else nms,
            end_time=_end_time(training.end_time),
            progress=None if quiet else _Told(),
            searched=lambda counts: few.append(int((counts < (first or 0)).sum())),
        )
        simulated = data.simulated
    in_pools = pooled and chosen != "SVMR"
    assert writer.write_runs is not None
    write_bytes(Path(target), writer.write_runs((run,), Writing()))
    fewer, queries = few[0], count(len(run), "query", "queries")
    if fewer and not quiet:
        where = " or ".join([*(["the pool"] if in_pools else []), *([source] if source else [])]) or "the corpus"
        options.say(
            f"note: {fewer:,} of {queries} searched fewer than {count(first or 0, 'video')}: {where} had no more"
        )
    if as_json:
        about = {"checkpoint": checkpoint, "model": found.config.model, "step": found.step, "split": split}
        figures = {
            "task": chosen,
            "queries": len(run),
            "moments": len(run.start),
            "pools": in_pools,
            "queries_with_fewer_videos": fewer,
            "simulated": simulated,
        }
        click.echo(json.dumps({**about, **figures, "run": target}, indent=2))
        return
    what = count(len(run.start), "video" if chosen == "VR" else "moment")
    asked = queries + (", each in its pool" if in_pools else "")
    options.say(f"wrote {target}: {found.config.model}, {chosen}; {asked}, {what}")


def _end_time(name: str) -> Any:
    return name


class _Told:
    """Says what predicting is at, on a terminal."""

    def __init__(self) -> None:
        import sys

        self._terminal = sys.stderr.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._terminal:
            click.echo(f"\r{stage}: {done:,} of {total:,}  " + ("\n" if done >= total else ""), err=True, nl=False)
