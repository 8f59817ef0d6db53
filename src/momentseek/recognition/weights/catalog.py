"""Models worth downloading: image-text encoders and speech recognisers.

Revisions are commits, so that what is downloaded cannot be changed under the same name. Nobody here has fetched the
files: a size and a SHA-256 are pinned where at least two unrelated projects publish the same ones for the same path
and revision. A file without a hash is taken as it first comes; what it was is then written down (``lock``), and it
must be the same ever after.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean

CATALOG_FILE = Path(__file__).with_name("catalog.toml")
HUB_ADDRESS = "https://huggingface.co"
ModelKind = Literal["image-text", "speech"]


@dataclass(frozen=True)
class HubFile:
    """A file of a repository: how large it is in bytes, and its SHA-256 if that is known.

    Without a hash the size is only what it is thought to be.
    """

    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class HubModel:
    """A repository of the hub, and of it the files that we need."""

    name: str
    repository: str
    revision: str
    files: Mapping[str, HubFile]
    dim: int | None
    """Columns of its vectors; None for a recogniser, which has none."""
    licence: str
    """Its licence; "by its weights" where the export states none and that of the original weights is taken."""
    good_for: str
    kind: ModelKind = "image-text"

    @property
    def megabytes(self) -> float:
        """All files together, about."""
        return sum(file.size for file in self.files.values()) / 1e6

    @property
    def address(self) -> str:
        """Where the files are; a file's path is put behind it."""
        hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB_ADDRESS
        return f"{hub}/{self.repository}/resolve/{self.revision}"

    @property
    def hashes(self) -> dict[str, str]:
        """Path → SHA-256, for the files whose hash is known."""
        return {path: file.sha256 for path, file in self.files.items() if file.sha256}

    @property
    def use(self) -> str:
        """The option by which a command uses it."""
        return f"--transcriber {self.name}" if self.kind == "speech" else f"--encoder hub:{self.name}"


def _read_catalog() -> dict[str, HubModel]:
    models = {}
    for name, values in tomllib.loads(CATALOG_FILE.read_text("utf-8")).items():
        files = {path: HubFile(**about) for path, about in values.pop("files").items()}
        models[name] = HubModel(name, files=files, dim=values.pop("dim", None), **values)
    return models


HUB_MODELS = _read_catalog()


def find_hub_model(name: str, kind: ModelKind | None = None) -> HubModel:
    """The model of that name, and of that kind if one is given.

    >>> find_hub_model("siglip-base")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no model 'siglip-base' to download; did you mean 'siglip2-base'?
    """
    known = {model.name: model for model in HUB_MODELS.values() if kind in (None, model.kind)}
    if name not in known:
        raise MomentseekError(f"there is no model {name!r} to download; {did_you_mean(name, known)}")
    return known[name]
