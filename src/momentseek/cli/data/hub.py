"""``momentseek data to-hub`` and ``from-hub``: convert to and from Hugging Face ``datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from momentseek.benchmarks.datasets.hub_folder import export_files, import_folder
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import write_bytes
from momentseek.measuring.formats.files import writer_for


@click.command()
@click.argument("splits", metavar="SPLIT=FILE...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="DIR", help="The dataset's folder.")
@click.option("--name", help="Title of the dataset card. Default: the folder's name.")
@click.option("--license", metavar="ID", help="Licence for the card, such as cc-by-4.0.")
@options.force
def to_hub(splits: tuple[str, ...], out: str, name: str | None, license: str | None, force: bool) -> None:
    """Write ground truth as a folder for Hugging Face's load_dataset: Parquet files and a dataset card.

    \b
      momentseek data to-hub train=train.jsonl test=test.jsonl --out mine
      python -c "import datasets; print(datasets.load_dataset('mine'))"
    """
    with options.new_folders(out):
        options.check_targets([text.partition("=")[2] for text in splits], [str(Path(out) / "README.md")], force)
        options.say(f"wrote {out}: {export_files(splits, out, name=name, license=license)}")


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--split", metavar="NAME", help="Split to read, if there are several.")
@click.option("--out", required=True, metavar="FILE", help="Write the ground truth to FILE.")
@click.option("--to", metavar="FORMAT", help="Write FORMAT. Default: by the ending of --out.")
@click.option("--rename", multiple=True, metavar="THEIRS=OURS", help="Rename a column, such as vid=video; repeatable.")
@options.force
def from_hub(folder: str, split: str | None, out: str, to: str | None, rename: tuple[str, ...], force: bool) -> None:
    """Convert a split of a Hugging Face dataset on disk (from the Hub, or from save_to_disk) to ground truth.

    \b
      momentseek data from-hub mine --split test --out test.jsonl
      momentseek data from-hub saved --out test.jsonl --rename qid=query_id --rename vid=video
    """
    options.check_targets([], [out], force)
    pairs = dict(text.partition("=")[::2] for text in rename)
    if any(not ours for ours in pairs.values()):
        raise MomentseekError("--rename takes THEIRS=OURS, such as vid=video")
    truth = import_folder(folder, split, rename=pairs)
    write_bytes(out, writer_for(to, out, "truth").to_bytes(truth))
    options.say(f"wrote {out}: {truth!r}")
