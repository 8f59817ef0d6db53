"""Where caches and downloaded models are."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder for caches: ``$XDG_CACHE_HOME/momentseek``, or ``~/.cache/momentseek``.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification asks. Without a home
    folder there is no cache: the path is then one that cannot be created, which its users report and do without.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek"
    try:
        return Path.home() / ".cache" / "momentseek"
    except RuntimeError:
        return Path(os.devnull) / "momentseek"


def models_folder() -> Path:
    """Where downloaded models are: ``$MOMENTSEEK_MODELS``, or ``$XDG_DATA_HOME/momentseek-models``.

    Not the cache: what took a download of a gigabyte should not go when caches are emptied. Nor among the libraries,
    one of which might be called "models".
    """
    own = os.environ.get("MOMENTSEEK_MODELS", "")
    if own:
        return Path(own).expanduser().absolute()
    root = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek-models"
    try:
        return Path.home() / ".local" / "share" / "momentseek-models"
    except RuntimeError:
        return Path(os.devnull) / "momentseek-models"
