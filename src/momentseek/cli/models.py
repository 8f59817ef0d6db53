"""``momentseek models`` and ``doctor``: download models, and check the installation."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import click

from momentseek.api.checkup import Item, checkup
from momentseek.cli import options
from momentseek.cli.downloads import get_models
from momentseek.cli.terminal import supported_images
from momentseek.recognition.downloads import missing_bytes, offline_models, try_model
from momentseek.recognition.inventory import inventory
from momentseek.recognition.weights import hub as lock
from momentseek.recognition.weights.catalog import HubModel, PackagedModel, find_model
from momentseek.recognition.weights.files import locate

MARKS = {"ok": "ok", "note": "note", "failed": "FAILED"}


@click.group()
def models() -> None:
    """List, download and verify models: encoders of images and texts, and speech recognisers.

    \b
    List installed and available models:
      momentseek models list
    Download all models for offline search (asks first):
      momentseek models get
    Download the recommended encoder (about 1 GB; asks first), then use it:
      momentseek models get siglip2-base
      momentseek add ~/Videos --encoder hub:siglip2-base

    Only `models get` ever downloads anything.
    """


@models.command("list")
@options.as_json
def list_models(as_json: bool) -> None:
    """List every model: what it is good for, where it comes from, and whether it is installed.

    \b
      momentseek models list
      momentseek models list --json
    """
    entries = inventory()
    if as_json:
        click.echo(json.dumps({"encoders": [asdict(entry) for entry in entries]}, indent=2))
        return
    rows = [
        [
            entry.name,
            entry.kind,
            str(entry.dim or ""),
            entry.state,
            f"{entry.megabytes:,.0f} MB" if entry.megabytes else "",
            entry.licence,
            entry.good_for,
            entry.source,
        ]
        for entry in entries
    ]
    header = ["name", "kind", "dim", "state", "size", "licence", "good for", "from"]
    options.echo_table(header, rows, align="llrlrlll")
    if any(entry.state == "absent" for entry in entries):
        click.echo(
            "\nTo get one that is absent: momentseek models get NAME (without hub:), or without a name the "
            "offline ones;\nsizes are those of the download."
        )
    for entry in entries:
        if entry.state == "damaged":
            options.say(f"{entry.name}: {entry.problem}")


@models.command("get")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--yes", "-y", is_flag=True, help="Download without asking.")
@click.option("--from", "source", metavar="URL|FOLDER", help="Take the files from a mirror or a folder.")
def get_model(names: tuple[str, ...], yes: bool, source: str | None) -> None:
    """Download models, check the hashes of their files, and run each once.

    \b
    All models for offline search (asks first):
      momentseek models get
    The recommended encoder from the hub:
      momentseek models get siglip2-base
    A larger speech model, then transcribe with it:
      momentseek models get whisper-small
      momentseek transcribe --transcriber whisper-small
    On a machine without a network, from a folder with the same files or with wheels:
      momentseek models get siglip2-base --from /media/stick/siglip2-base
      momentseek models get --from /media/stick/wheels

    An interrupted download continues where it stopped.
    """
    wanted = [find_model(name.removeprefix("hub:")) for name in names] or offline_models()
    missing = {model.name: size for model in wanted if (size := missing_bytes(model))}
    for model in wanted:
        if model.name not in missing:
            _say_present(model)
    get_models([model for model in wanted if model.name in missing], missing, source, yes)


def _say_present(model: HubModel | PackagedModel) -> None:
    if isinstance(model, PackagedModel):
        folder = locate(model.assets[0])
    else:
        folder = lock.model_folder(model.name)
        for problem in try_model(model, folder):
            options.say(f"note: {problem}")
    click.echo(f"{model.name} is already here: {folder}")


@models.command("verify")
@click.argument("name", required=False)
@options.as_json
def verify_models(name: str | None, as_json: bool) -> None:
    """Hash every file of the installed models (or of NAME) again, and compare.

    \b
      momentseek models verify
      momentseek models verify hub:siglip2-base
    """
    entries = [entry for entry in inventory(fresh=True, only=name) if name or entry.state != "absent"]
    if as_json:
        click.echo(json.dumps({"encoders": [asdict(entry) for entry in entries]}, indent=2))
    else:
        for entry in entries:
            click.echo(f"{entry.name}: {'unchanged' if entry.state == 'ready' else entry.problem}")
    if any(entry.state != "ready" for entry in entries):
        sys.exit(1)


@click.command()
@options.as_json
@click.option("--full", is_flag=True, help="Hash every weight file again, even those that have not changed.")
def doctor(as_json: bool, full: bool) -> None:
    """Check that everything needed for search is installed, and say how to install what is missing.

    \b
      momentseek doctor
      momentseek doctor --json

    Nothing is downloaded or changed. The exit code is 0 if videos can be added and searched, else 1.
    """
    items = [*checkup(full=full), _terminal()]
    failed = sum(item.state == "failed" for item in items)
    if as_json:
        click.echo(json.dumps({"usable": not failed, "items": [asdict(item) for item in items]}, indent=2))
    else:
        rows = [[item.name, MARKS[item.state], item.found] for item in items]
        options.echo_table(["what", "state", "found"], rows, align="lll")
        todo = [item for item in items if item.advice]
        if todo:
            click.echo("\nWhat to do:")
            for item in sorted(todo, key=lambda item: item.state != "failed"):
                click.echo(f"  {item.name}: {item.advice}")
        click.echo(f"\n{failed} of these must be fixed first." if failed else "\nVideos can be added and searched.")
    if failed:
        sys.exit(1)


def _terminal() -> Item:
    kind = supported_images(os.environ)
    return Item("terminal", "ok", f"shows images ({kind})" if kind else "shows no images; results are text")
