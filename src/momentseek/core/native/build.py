"""Build the compiled kernels: all C files of this folder become one shared library next to them.

    python -m momentseek.core.native.build

Installing does it (``hatch_build.py``, which reads this file before there is a package, so nothing but Python's own
library is imported here). The library's name has a hash of the sources and options in it; what was built from other
sources is never loaded. The compiler is ``$CC``, else the one that Python was built by, else ``cc``; it must know the
vector types of GCC and Clang, which Microsoft's does not.
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
"""Products and sums stay apart (no contraction), so that bounds are those of numpy to the last bit."""
MOST_SECONDS = 300


class CompilerError(Exception):
    """There is no compiler that can build the kernels; the message says why."""


@cache
def library_path() -> Path:
    """Where the library of these sources is, or would be.

    >>> library_path().name.startswith("kernels-")
    True
    """
    digest = hashlib.blake2b("\n".join(OPTIONS).encode(), digest_size=8)
    for source in sources(headers=True):
        digest.update(source.name.encode() + b"\n" + source.read_bytes())
    return FOLDER / f"{PREFIX}{digest.hexdigest()}{library_suffix()}"


def sources(*, headers: bool = False) -> list[Path]:
    """The C files, in order of their names."""
    return sorted(p for p in FOLDER.iterdir() if p.suffix == ".c" or (headers and p.suffix == ".h"))


def library_suffix() -> str:
    """What names of shared libraries end in."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def compiler_commands() -> list[list[str]]:
    """Compilers to try, the likeliest first, each as the start of a command."""
    if os.environ.get("CC"):
        return [shlex.split(os.environ["CC"])]
    python = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    found = [command for command in (python, ["cc"], ["gcc"], ["clang"]) if command]
    return [command for i, command in enumerate(found) if command not in found[:i]]


def build(*extra: str) -> Path:
    """Compile the kernels, unless they are there already, and delete libraries of other sources.

    ``extra`` options are given to the compiler, which then always runs.
    """
    path = library_path()
    if extra or not path.exists():
        compile_library(path, extra)
    for old in FOLDER.glob(f"{PREFIX}*{library_suffix()}"):
        if old != path:
            old.unlink(missing_ok=True)
    return path


def compile_library(path: Path, extra: tuple[str, ...] = ()) -> None:
    """Compile all sources into the library ``path``, which appears whole or not at all."""
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
