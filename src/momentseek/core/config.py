"""TOML files, and the user's settings file.

The settings file has ``library`` for all commands, then a table for each command with its options by their long
names. A flag on the command line beats the environment, which beats the file. Which keys are valid is known to the
command line (``momentseek config``).
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
"""The one key that is no option of a single command."""
TOML_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
MAX_TOML_BYTES = 16 << 20
"""The largest TOML file that is read; settings are a few kilobytes."""


def read_toml(path: Path, missing: str = "check the path") -> dict[str, Any]:
    """The tables of a TOML file, or one sentence about what is wrong; ``missing`` says what to do if there is none."""
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
    """The line of a TOML file, counted from 1, on which a key stands: of the longest part of it that is found.

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
    """Every table and key of a TOML text with its line."""
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
    """The parts of a dotted key.

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
    found = read_toml(path)
    if not isinstance(found.get(LIBRARY_KEY, ""), str):
        raise MomentseekError(f"{path}: library must be a text, a name or a path; correct the file")
    return found


def write_config(settings: Mapping[str, Any]) -> Path:
    """Replace the settings file; comments in it are lost, and tables without settings."""
    path = config_path()
    kept = {key: value for key, value in settings.items() if not isinstance(value, Mapping) or value}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{path.parent}: cannot be made ({e.strerror}); check the folder") from None
    write_bytes(path, tomli_w.dumps(kept).encode(), mode=0o600)  # an address may hold a password
    return path
