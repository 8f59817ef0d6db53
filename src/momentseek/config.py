"""The settings file: what a person has chosen once instead of typing it with every command.

A TOML file: ``library`` for all commands, then a table for each command with its options by their long names. A flag on
the command line beats the environment, which beats the file. What the keys may be is known to the command line
(``momentseek config``); here is only where the file is, and reading and writing it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError

CONFIG_VARIABLE = "MOMENTSEEK_CONFIG"
LIBRARY_KEY = "library"
"""The one key that is no option of a single command."""


def config_path() -> Path:
    """``$MOMENTSEEK_CONFIG``, or ``momentseek/config.toml`` in ``$XDG_CONFIG_HOME``, which is ``~/.config`` if not set.

    Without a home folder the path is one that cannot exist, so there are no settings.
    """
    if own := os.environ.get(CONFIG_VARIABLE, ""):
        return Path(own).expanduser().absolute()
    root = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek" / "config.toml"
    try:
        return Path.home() / ".config" / "momentseek" / "config.toml"
    except RuntimeError:
        return Path(os.devnull) / "config.toml"


def read_config() -> dict[str, Any]:
    """The settings as the file has them; none where there is no file."""
    path = config_path()
    try:
        if not path.is_file():
            return {}
    except OSError:  # a folder that may not be entered has no settings for us
        return {}
    from momentseek.toml import read_toml

    found = read_toml(path)
    if not isinstance(found.get(LIBRARY_KEY, ""), str):
        raise MomentseekError(f"{path}: library must be a text, a name or a path; correct the file")
    return found


def write_config(settings: Mapping[str, Any]) -> Path:
    """Write all settings anew, whole or not at all; comments in the file are lost, and tables without settings."""
    from momentseek.atomic import write_bytes
    from momentseek.toml import toml_text

    path = config_path()
    kept = {key: value for key, value in settings.items() if not isinstance(value, Mapping) or value}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{path.parent}: cannot be made ({e.strerror}); check the folder") from None
    write_bytes(path, toml_text(kept).encode())
    return path
