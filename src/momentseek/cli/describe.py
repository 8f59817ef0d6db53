"""``momentseek describe``: describe the moments of a split in words, with a trained captioner."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.cli.numbers import Number
from momentseek.cli.predict import StageLine


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--data", "folder", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--split", required=True, metavar="NAME", help="The split whose moments are described.")
@click.option("--out", "-o", "target", metavar="FILE", help="The captions to write: .jsonl as TVC's, or as --to says.")
@click.option("--to", metavar="FORMAT", help="The format of FILE. Default: tvc for .jsonl.")
@click.option(
    "--beam",
    type=click.IntRange(1, 64),
    help="Captions kept while one is written; 1 is greedy. Default: as the model was trained, greedy if not said.",
)
@click.option("--length-penalty", type=Number(0, 10), help="How much long captions are favoured in a beam, from 0.")
@click.option("--device", default="auto", show_default=True, help="Where to compute: cpu, cuda, ….")
@options.force
@options.as_json
@options.quiet
def command(
    checkpoint: str,
    folder: str,
    split: str,
    target: str | None,
    to: str | None,
    beam: int | None,
    length_penalty: float | None,
    device: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Describe the moments of a split with the captioner of CHECKPOINT: a file, or the folder of a training run.

    \b
    Train a captioner, describe and measure:
      momentseek train mmt --data simulation --out runs/mmt
      momentseek describe runs/mmt --data simulation --split tvc_test --out captions.jsonl
      momentseek evaluate captions.jsonl --truth simulation/tvc_test_release.jsonl --protocol tvc
    With a beam of three that favours short captions:
      momentseek describe runs/mmt --data simulation --split tvc_test --beam 3 --length-penalty 0.5 --out beam.jsonl

    Without --out the captions are printed, a line for each moment; with --json as objects with video, start and end.
    """
    import json

    from momentseek.optional import optional_module

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.errors import MomentseekError
    from momentseek.formats import write_captions
    from momentseek.formats.files import writer_for
    from momentseek.tables import count
    from momentseek.training.captions.description import describe_split

    if to and target is None:
        raise MomentseekError("--to is the format of a file; name it (--out FILE)")
    writer = writer_for(to, target, "captions") if target is not None else None
    options.check_targets([checkpoint], [target] if target is not None else [], force)
    told = describe_split(
        checkpoint,
        folder,
        split,
        beam=beam,
        length_penalty=length_penalty,
        device=device,
        progress=None if quiet else StageLine(),
    )
    table = told.captions
    if target is not None and writer is not None:
        write_captions(table, target, format=writer.name)
    rows = [
        {"id": name, "video": table.videos[video], "start": start, "end": end, "caption": caption}
        for name, video, start, end, caption in zip(
            table.query_ids,
            table.video.tolist(),
            table.start.tolist(),
            table.end.tolist(),
            table.captions,
            strict=True,
        )
    ]
    about = {"checkpoint": checkpoint, "model": told.model, "step": told.step, "split": split}
    how = {"beam": told.decoding.beam, "length_penalty": told.decoding.length_penalty, "simulated": told.simulated}
    if as_json:
        click.echo(json.dumps({**about, **how, "captions": rows}, indent=2, ensure_ascii=False))
    elif target is None:
        for row in rows:
            click.echo(f"{row['video']} {row['start']:.2f}-{row['end']:.2f}\t{row['caption']}")
    if target is not None and not as_json:
        searched = "greedy" if told.decoding.beam == 1 else f"beam of {told.decoding.beam}"
        options.say(f"wrote {target}: {told.model}, {searched}; {count(len(table), 'moment')}")
