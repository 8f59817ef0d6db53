"""Coverage-guided fuzzing of what reads hostile input (atheris, that is libFuzzer for Python).

    python fuzz/run.py [--seconds 60] [TARGET...]

Each target (targets.py) starts from its seeds in corpus/ and is mutated for so many seconds; inputs that reach new
code are kept in artefacts/fuzz/TARGET and taken up by the next run. An input that fails is written beside them and
named, and the exit code is 1. Coverage counts our Python alone: ffmpeg is fuzzed, but not guided.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
KEPT = HERE.parent / "artefacts" / "fuzz"
NAMES = ("subtitles", "media_headers", "annotations", "queries", "ranges", "messages")
INPUT_SECONDS, MEGABYTES, MAX_BYTES = 25, 2048, 20_000
"""What one input may take, and how long it may be."""


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["momentseek"]):
        from targets import try_input
    kept = KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={MAX_BYTES}", f"-artifact_prefix={KEPT / name}-", "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(kept), str(HERE / "corpus" / name)], lambda data: try_input(name, data))
    atheris.Fuzz()


def report(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own; prints how it went, and says whether all was well."""
    begun = time.monotonic()
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ})
    tries = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    print(
        f"{name}: {int(tries[1]) if tries else 0:,} inputs in {time.monotonic() - begun:.0f} s, "
        f"{covered[-1] if covered else 0} branches reached, {'nothing found' if not done.returncode else 'FAILED'}",
        flush=True,
    )
    if done.returncode:
        print(done.stderr[-3000:])
    return not done.returncode


def main() -> None:
    """Fuzz the targets that are named, or all of them, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target; 60 unless given")
    parser.add_argument("--one", choices=NAMES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        fuzz(given.one, given.seconds)
        return
    if unknown := set(given.targets) - set(NAMES):
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    good = [report(name, given.seconds) for name in given.targets or NAMES]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
