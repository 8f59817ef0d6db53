"""Compile all C files of this folder into one shared library next to them.

    python -m momentseek.core.native.build

Installation does this too (``hatch_build.py`` reads this file before the package exists, so only the standard library
is imported here). The library's name contains a hash of the sources and options, so that a library of other sources is
never loaded. The compiler is ``$CC``, else the one that built Python, else ``cc``; it must support the vector types of
GCC and Clang, which Microsoft's does not.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
PREFIX = "kernels-"
OPTIONS = ("-O3", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wno-psabi")
"""Compiler options; no contraction of products and sums, so that bounds equal numpy's to the last bit."""
MOST_SECONDS = 300


class CompilerError(Exception):
    """No compiler can build the kernels; the message says why."""


@cache
def library_path() -> Path:
    """Return the path of the library for these sources, whether or not it exists.

    >>> library_path().name.startswith("kernels-")
    True
    """
    digest = hashlib.blake2b("\n".join(OPTIONS).encode(), digest_size=8)
    for source in sources(headers=True):
        digest.update(source.name.encode() + b"\n" + source.read_bytes())
    return FOLDER / f"{PREFIX}{digest.hexdigest()}{library_suffix()}"


def sources(*, headers: bool = False) -> list[Path]:
    """Return the C files, sorted by name."""
    return sorted(p for p in FOLDER.iterdir() if p.suffix == ".c" or (headers and p.suffix == ".h"))


def library_suffix() -> str:
    """Return the file suffix of shared libraries."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def compiler_commands() -> list[list[str]]:
    """Return the compilers to try in order, each as the start of a command."""
    if os.environ.get("CC"):
        return [shlex.split(os.environ["CC"])]
    python = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    found = [command for command in (python, ["cc"], ["gcc"], ["clang"]) if command]
    return [command for i, command in enumerate(found) if command not in found[:i]]


def build(*extra: str) -> Path:
    """Compile the kernels unless they already exist, and delete libraries of other sources.

    ``extra`` options are passed to the compiler, which then always runs.
    """
    path = library_path()
    if extra or not path.exists():
        compile_library(path, extra)
    for old in FOLDER.glob(f"{PREFIX}*{library_suffix()}"):
        if old != path:
            old.unlink(missing_ok=True)
    return path


def compile_library(path: Path, extra: tuple[str, ...] = ()) -> None:
    """Compile all sources into the library ``path``, which appears complete or not at all."""
    reasons = []
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".kernels-") as work:
        made = Path(work) / path.name
        for compiler in compiler_commands():
            command = [*compiler, *OPTIONS, *extra, "-o", str(made), *map(str, sources()), "-lm"]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=MOST_SECONDS)
            except FileNotFoundError:
                reasons.append(f"there is no {compiler[0]}")
            except (OSError, subprocess.SubprocessError) as e:
                said = (getattr(e, "stderr", None) or str(e)).strip().splitlines()
                reasons.append(f"{compiler[0]} failed: {next((x for x in said if 'error' in x), said[-1])}")
            else:
                made.replace(path)
                return
    raise CompilerError("; ".join(reasons))


if __name__ == "__main__":
    try:
        print(build(*sys.argv[1:]))
    except (CompilerError, OSError) as e:
        print(f"the kernels cannot be compiled ({e}); install a C compiler, such as gcc", file=sys.stderr)
        sys.exit(2)
