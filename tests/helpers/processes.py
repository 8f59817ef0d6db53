"""Start ``momentseek`` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LIGHT = Path(__file__).parent.parent / "library" / "light.py"


def start_momentseek(
    *arguments: object, light: bool = False, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """Start ``momentseek ARGUMENTS``, with ``light`` encoders that cost nothing if asked for."""
    program = [str(LIGHT)] if light else ["-m", "momentseek"]
    command = [sys.executable, *program, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=env, cwd=cwd)
