"""TOML files, and the user's settings file.

The settings file has ``library`` for all commands, then a table for each command with its options by their long
names. A flag on the command line overrides the environment, which overrides the file. The command line knows which keys
are valid (``momentseek config``).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import tomli_w

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError

CONFIG_VARIABLE = "MOMENTSEEK_CONFIG"
LIBRARY_KEY = "library"
"""The only key that applies to all commands."""
TOML_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
MAX_TOML_BYTES = 16 << 20
"""Maximum size of a TOML file; settings are a few kilobytes."""


def read_toml(path: Path, missing: str = "check the path") -> dict[str, Any]:
    """Read a TOML file, or raise a one-sentence error; ``missing`` says what to do if the file does not exist."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TOML_BYTES + 1)
        if len(data) > MAX_TOML_BYTES:
            raise MomentseekError(f"{path}: larger than {MAX_TOML_BYTES:,} bytes; settings are small, check the path")
        return tomllib.loads(data.decode().replace("\r\n", "\n"))
    except FileNotFoundError:
        raise MomentseekError(f"{path}: there is no such file; {missing}") from None
    except RecursionError:
        raise MomentseekError(f"{path}: is nested too deeply for TOML; correct the file") from None
    except (ValueError, OSError) as e:
        raise MomentseekError(f"{path}: cannot be read as TOML ({e}); correct the file") from None


def toml_line(path: Path, key: Sequence[str | int]) -> int | None:
    """Return the line (from 1) of a key in a TOML file, or of the longest part of the key that is found.

    ``("columns", 1, "label")`` is a key of the second ``[[columns]]``.
    """
    try:
        stands = _key_lines(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found: tuple[int, int | None] = (0, None)
    for here, number in stands:
        shared = min(len(here), len(key))
        if here[:shared] == tuple(key[:shared]) and shared > found[0]:
            found = (shared, number)
    return found[1]


@lru_cache(maxsize=4)
def _key_lines(text: str) -> list[tuple[tuple[str | int, ...], int]]:
    """Return every table and key of a TOML text with its line."""
    found: list[tuple[tuple[str | int, ...], int]] = []
    table: tuple[str | int, ...] = ()
    counts: dict[tuple[str | int, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header = TOML_HEADER.match(line)
        name = header[2] if header else line.partition("=")[0] if "=" in line else ""
        try:
            here = _key_parts(name)
        except ValueError:  # a line inside a longer value
            continue
        if header and header[1] == "[[":
            counts[here] = counts.get(here, -1) + 1
            here = (*here, counts[here])
        table, here = (here, here) if header else (table, (*table, *here))
        found.append((here, number))
    return found


def _key_parts(name: str) -> tuple[str | int, ...]:
    """Split a dotted key into its parts.

    >>> _key_parts('rows."a b".model')
    ('rows', 'a b', 'model')
    """
    inner: Any = tomllib.loads(f"{name} = 0")
    parts: list[str | int] = []
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return tuple(parts)


def config_path() -> Path:
    """Return the path of the settings file.

    It is ``$MOMENTSEEK_CONFIG``, or ``momentseek/config.toml`` in ``$XDG_CONFIG_HOME`` (default: ``~/.config``).
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
    """Read the settings file; no file means no settings."""
    path = config_path()
    try:
        if not path.is_file():
            return {}
    except OSError:  # an inaccessible folder means no settings
        return {}
    found = read_toml(path)
    if not isinstance(found.get(LIBRARY_KEY, ""), str):
        raise MomentseekError(f"{path}: library must be a text, a name or a path; correct the file")
    return found


def write_config(settings: Mapping[str, Any]) -> Path:
    """Replace the settings file; its comments and empty tables are lost."""
    path = config_path()
    kept = {key: value for key, value in settings.items() if not isinstance(value, Mapping) or value}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{path.parent}: cannot be created ({e.strerror}); check the folder") from None
    write_bytes(path, tomli_w.dumps(kept).encode(), mode=0o600)  # an address may hold a password
    return path
