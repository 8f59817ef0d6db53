"""Ask before downloading models, and show the progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from momentseek.cli.options import say
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count, text_table
from momentseek.recognition.downloads import absent_models, fetch_model, missing_bytes, missing_files
from momentseek.recognition.weights import hub
from momentseek.recognition.weights.catalog import HubModel, PackagedModel
from momentseek.recognition.weights.files import models_folder

NEEDED = ("minilm", "things")
"""The models without which the default encoder cannot run; the others make searches better."""


def offer_models(quiet: bool = False) -> None:
    """Report missing offline models; on a terminal, offer to download them if adding needs one."""
    absent = absent_models()
    if not absent:
        return
    if any(model.name in NEEDED for model in absent) and sys.stdin.isatty() and sys.stderr.isatty():
        say("these models are not downloaded yet:")
        get_models(absent, {model.name: missing_bytes(model) for model in absent}, None, False)
    elif not quiet:
        missing = "; ".join(f"{model.name} ({model.megabytes:,.0f} MB): {model.good_for}" for model in absent)
        say(f"note: not downloaded: {missing}; get them with: momentseek models get")


def get_models(
    wanted: Sequence[HubModel | PackagedModel], sizes: Mapping[str, int], source: str | None, yes: bool
) -> None:
    """Show the size and purpose of models, ask, and download them."""
    if not wanted:
        return
    _announce(wanted, sizes, source)
    if not yes and not _confirm():
        raise click.Abort
    problems: list[str] = []
    failed: list[MomentseekError] = []
    for model in wanted:
        try:
            with progress_bars(f"{model.name}, MB") as progress:
                folder = fetch_model(model, source, progress=progress, note=problems.append)
        except KeyboardInterrupt:
            say("what has arrived is kept; the same command continues from there")
            raise
        except hub.UnreachableError:
            raise
        except MomentseekError as e:  # the other models may still download
            failed.append(e)
            continue
        use = f"; use it as: {model.use}" if isinstance(model, HubModel) and model.use else ""
        click.echo(f"{model.name} is in {folder}{use}")
    for problem in (*problems, *failed[1:]):
        say(f"note: {problem}")
    if failed:
        raise failed[0]


def _announce(wanted: Sequence[HubModel | PackagedModel], sizes: Mapping[str, int], source: str | None) -> None:
    if len(wanted) > 1:
        rows = [[m.name, f"{sizes[m.name] / 1e6:,.0f} MB", m.good_for, m.licence] for m in wanted]
        click.echo(text_table(["model", "download", "good for", "licence"], rows, align="lrll"), err=True)
        origin = source or "the package index that pip is set to, without installing anything"
        say(f"{sum(sizes.values()) / 1e6:,.0f} MB into {models_folder()}, from {origin}")
        return
    (model,) = wanted
    say(f"{model.name}: {model.good_for}; licence {model.licence}")
    say(f"from {source or model.address}")
    size = f"about {sizes[model.name] / 1e6:,.0f} MB"
    if isinstance(model, PackagedModel):
        say(f"into {model.assets[0].kept}, {size}; the package is not installed")
        return
    missing = missing_files(model)
    say(f"into {hub.model_folder(model.name)}, {size} in {count(len(missing), 'file')}")
    unknown = [file for file in missing if file not in model.hashes]
    if unknown:
        say(f"no hash is known for {', '.join(unknown)}: this download is trusted, and later ones must match it")


def _confirm() -> bool:
    try:
        return click.confirm("Download?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise MomentseekError("there is no terminal to ask on; use --yes to download") from None
