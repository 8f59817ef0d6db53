"""What a model's files were when they were first downloaded: checked ever after.

A file whose hash the catalogue knows must be that one from the first; of the others the first download is trusted.
The lock lies beside the model's folder, not in it, so that it outlives a deleted model: a second download must give
the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from momentseek.encoders.folders import models_folder
from momentseek.encoders.hashes import hashes
from momentseek.encoders.hub.catalogue import HubModel
from momentseek.errors import MomentseekError


def model_folder(name: str) -> Path:
    """Where a downloaded model is."""
    return models_folder() / name


def lock_file(name: str) -> Path:
    """Where its hashes are written down."""
    return models_folder() / f"{name}.lock.json"


def read_lock(name: str) -> dict[str, str]:
    """Path → SHA-256, for the files downloaded so far."""
    path = lock_file(name)
    try:
        found = json.loads(path.read_bytes())["sha256"]
        return {str(file): str(digest) for file, digest in found.items()}
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MomentseekError(
            f"{path}: is damaged; delete it and the folder {name} beside it, then get the model again"
        ) from None


def write_lock(name: str, source: str, digests: Mapping[str, str]) -> None:
    """Write down what was downloaded, and where it came from."""
    from momentseek.atomic import write_bytes

    write_bytes(lock_file(name), json.dumps({"source": source, "sha256": dict(digests)}, indent=1).encode())


def check_model(model: HubModel, *, fresh: bool = False) -> Path:
    """The model's folder, if all its files are there and what they should be."""
    name = model.name
    folder, first = model_folder(name), read_lock(name)
    pinned = {**first, **model.hashes}
    if not first or not folder.is_dir():
        raise MomentseekError(f"the model {name} is not downloaded; get it with: momentseek models get {name}")
    for file in (*model.files, *first):
        if not (folder / file).is_file():
            raise MomentseekError(f"{folder / file}: is missing; get it with: momentseek models get {name}")
    found = hashes([folder / file for file in pinned], fresh=fresh)
    for file, digest in pinned.items():
        if found[folder / file] != digest:
            raise MomentseekError(
                f"{folder / file}: {what_differs(model, file)}; delete it and run: momentseek models get {name}"
            )
    return folder


def what_differs(model: HubModel, file: str) -> str:
    """What it means that a file's hash is another one: it is not the published file, or not the one that came first."""
    if file in model.hashes:
        return "is not the published file (its SHA-256 differs)"
    return "has changed since it was downloaded (its SHA-256 differs)"
