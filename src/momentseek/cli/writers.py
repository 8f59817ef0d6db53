"""Which format a verb writes its predictions in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from momentseek.formats import FileFormat


def run_writer(to: str | None, path: Path) -> FileFormat:
    """The format of predictions that ``--to`` or the file's ending names.

    >>> run_writer(None, Path("test.jsonl")).name, run_writer("tvr", Path("test.json")).name
    ('native-run', 'tvr-submission')
    """
    from momentseek.errors import MomentseekError
    from momentseek.formats import FORMATS
    from momentseek.formats.convert import BY_SUFFIX, SIBLINGS

    able = {n: f for n, f in FORMATS.items() if f.write_runs is not None}
    name = to or BY_SUFFIX.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "")
    for sibling in SIBLINGS:
        if name + sibling in able:
            return able[name + sibling]
    if to:
        raise MomentseekError(f"predictions cannot be written as {to!r}, only as {', '.join(sorted(able))}")
    raise MomentseekError(f"{path}: say which format to write (--to {', '.join(sorted(able))}), or end it in .jsonl")
