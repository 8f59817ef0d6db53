"""Where things that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/momentseek``, or ``~/.cache/momentseek``.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification asks.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".cache") / "momentseek"
