"""``momentseek formats``, ``convert`` and ``measures``: list and convert file formats, and list measures."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from momentseek.api.files import convert as convert_file
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, read_corpus
from momentseek.measuring.formats.convert import Conversion, Description, count_words, describe
from momentseek.measuring.formats.registry import KINDS
from momentseek.measuring.measures.grammar import describe_measures, describe_protocols


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@options.videos
@options.as_json
def formats(files: tuple[str, ...], videos: str | None, as_json: bool) -> None:
    """List the file formats, or show the format and contents of each FILE.

    \b
      momentseek formats
      momentseek formats predictions.json val.json
    """
    if files:
        _describe_files(files, videos, as_json)
    elif as_json:
        entries = [
            {
                "name": f.name,
                "kind": f.kind,
                "title": f.title,
                "writes": f.write is not None,
                "suffix": f.suffix,
                "notes": f.notes.replace("`videos`", "--videos"),
            }
            for f in FORMATS.values()
        ]
        options.echo_json({"formats": entries})
    else:
        ordered = sorted(FORMATS.values(), key=lambda f: (list(KINDS).index(f.kind), f.name))
        rows = [[f.name, f.kind, "read, write" if f.write else "read", f.title] for f in ordered]
        options.echo_table(["format", "kind", "can", "what it is"], rows, align="l")


def _describe_files(files: tuple[str, ...], videos: str | None, as_json: bool) -> None:
    corpus = read_corpus(videos) if videos else None
    found: list[Description | dict[str, str]] = []
    for path in files:
        try:
            found.append(describe(path, corpus))
        except MomentseekError as e:
            found.append({"path": path, "error": str(e)})
    if as_json:
        options.echo_json({"files": [entry if isinstance(entry, dict) else asdict(entry) for entry in found]})
    else:
        for entry in found:
            click.echo(entry["error"] if isinstance(entry, dict) else _description_text(entry))
    if any(isinstance(entry, dict) for entry in found):
        raise SystemExit(2)


def _description_text(found: Description) -> str:
    variant = f" ({found.variant})" if found.variant else ""
    sizes = [(getattr(found, what), what) for what in ("queries", "moments", "videos", "captions")]
    size = ", ".join(count_words(number, what) for number, what in sizes if number)
    return "\n".join([f"{found.path}: {found.format}{variant}; {size}", *(f"  {text}" for text in found.findings)])


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", metavar="FORMAT", help="Write FORMAT. Default: by OUT's ending, .jsonl, .parquet or .txt.")
@click.option("--from", "format", metavar="FORMAT", help="Read IN as FORMAT instead of detecting its format.")
@options.videos
@options.invalid
@click.option(
    "--task",
    type=click.Choice(["VCMR", "SVMR", "VR"]),
    help="Convert only this list of a TVR submission. Default: all.",
)
@click.option("--force", is_flag=True, help="Overwrite OUT if it exists.")
@options.as_json
def convert(source: str, target: str, invalid: str | None, as_json: bool, **given: Any) -> None:
    """Convert IN (ground truth, run, captions or list of videos) to another format and write it to OUT.

    If OUT's format cannot hold something essential (say, graded relevance as TVR), the command
    fails; if the moments themselves stay intact, it reports what it left out. OUT appears only when
    it is complete.

    \b
    Charades-STA for tools that read ActivityNet's format (durations come from the second file):
      momentseek convert charades_sta_test.txt test.json --to activitynet --videos durations.json
    Predictions as compressed JSON Lines:
      momentseek convert predictions.json predictions.jsonl.gz

    `momentseek formats` lists the formats.
    """
    done = convert_file(source, target, invalid=invalid or "error", **given)  # type: ignore[arg-type]
    if as_json:
        options.echo_json(asdict(done))
    else:
        _show_conversion(done)


def _show_conversion(done: Conversion) -> None:
    sizes = {"queries": done.queries, "moments": done.moments, "captions": done.captions}
    if FORMATS[done.read_as].kind == "corpus":
        sizes = {"videos": done.moments}
    size = ", ".join(count_words(n, what) for what, n in sizes.items() if n)
    options.say(f"read {done.source}: {done.read_as}{f', {done.variant}' if done.variant else ''}; {size}")
    for finding in done.findings:
        options.say(f"  {finding}")
    options.say(f"wrote {done.target}: {done.written_as}")
    if done.lost:
        options.say(f"  not stored in {done.written_as}: {'; '.join(done.lost)}")


@click.command()
@options.as_json
def measures(as_json: bool) -> None:
    """List the measures with their options, and the protocols.

    \b
    A name is NAME@K[IoU>=m,option=value]; braces make lists:
      NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]   R@1[IoU>=0.5,task=SVMR]   AxIoU@10   mAP   dR@1[IoU>=0.7]
    """
    if as_json:
        click.echo(json.dumps({"measures": describe_measures(), "protocols": describe_protocols()}, indent=2))
        return
    click.echo("Measures (the first value of an option is its default)\n")
    for measure in describe_measures():
        click.echo(f"  {measure['usage']}\n      {measure['about']}")
        for name, values in measure["options"].items():
            click.echo(f"      {name} = {' | '.join(values)}")
    click.echo("\nProtocols\n")
    for protocol in describe_protocols():
        click.echo(f"  {protocol['name']}\n      {protocol['about']}")
        if protocol["measures"]:
            click.echo(f"      {'  '.join(protocol['measures'])}")
