"""``momentseek formats``: what can be read and written, and what a given file is."""

from __future__ import annotations

from typing import cast

import click

from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import text_table
from momentseek.measuring.formats import FORMATS, read_corpus
from momentseek.measuring.formats.convert import count_words, describe
from momentseek.measuring.formats.registry import KINDS


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@options.videos
@options.as_json
def command(files: tuple[str, ...], videos: str | None, as_json: bool) -> None:
    """List the file formats, or say what each FILE is and holds.

    \b
      momentseek formats
      momentseek formats predictions.json val.json
    """
    if files:
        _describe(files, videos, as_json)
    else:
        _list(as_json)


def _list(as_json: bool) -> None:

    if as_json:
        import json

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
        click.echo(json.dumps({"formats": entries}, indent=2, ensure_ascii=False))
        return

    ordered = sorted(FORMATS.values(), key=lambda f: (list(KINDS).index(f.kind), f.name))
    rows = [[f.name, f.kind, "read, write" if f.write else "read", f.title] for f in ordered]
    click.echo(text_table(["format", "kind", "can", "what it is"], rows, align="l"))


def _describe(files: tuple[str, ...], videos: str | None, as_json: bool) -> None:
    from dataclasses import asdict

    corpus = read_corpus(videos) if videos else None
    found: list[dict[str, object]] = []
    for path in files:
        try:
            found.append(asdict(describe(path, corpus)))
        except MomentseekError as e:
            found.append({"path": path, "error": str(e)})
    if as_json:
        import json

        click.echo(json.dumps({"files": found}, indent=2, ensure_ascii=False))
    else:
        for entry in found:
            click.echo("\n".join(_words(entry)))
    if any("error" in entry for entry in found):
        raise SystemExit(2)


def _words(entry: dict[str, object]) -> list[str]:
    if "error" in entry:
        return [str(entry["error"])]

    variant = f" ({entry['variant']})" if entry["variant"] else ""
    parts = [count_words(cast(int, entry[k]), k) for k in ("queries", "moments", "videos", "captions") if entry[k]]
    findings = entry["findings"]
    assert isinstance(findings, tuple)
    return [f"{entry['path']}: {entry['format']}{variant}; {', '.join(parts)}", *(f"  {text}" for text in findings)]
