"""How long a command takes from nothing: its help, one search of a small library, a server's first answer.

    python bench/start.py [--rounds 7] [--library FOLDER]

Each is a process of its own, beside Python's own start (`python -c pass`) and `import numpy`, in turns; counted is the
processor's time of the process, which other work on the machine disturbs less than the clock, and the time by the
clock, which is what somebody waits, and means something on an idle machine alone. Without --library the demo's is made
first (a quarter of a minute). The encoder's weights are checked once before.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from record import Record, family_time, rounds

BARE, NUMPY = "python -c pass", "import numpy"


def python(*words: str) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def first_answer(library: Path) -> None:
    """Start a server, wait for its first answer, and end it."""
    words = [sys.executable, "-m", "momentseek", "serve", "--library", str(library), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1].strip().rstrip("/"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/v1/status")
        connection.getresponse().read()
        connection.close()
        process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--library", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        library = options.library
        if library is None:
            python("-m", "momentseek", "demo", "--into", room, "--no-words")
            library = Path(room) / "library"
        search = ("-m", "momentseek", "search", "--library", str(library), "a flower")
        python(*search)
        works = {
            BARE: partial(python, "-c", "pass"),
            NUMPY: partial(python, "-c", "import numpy"),
            "import click": partial(python, "-c", "import click"),
            "momentseek --help": partial(python, "-m", "momentseek", "--help"),
            "a cold search of a small library": partial(python, *search),
            "a server's first answer": partial(first_answer, library),
        }
        seconds = rounds(works, options.rounds, family_time)
        waited = rounds(works, options.rounds)
    record = Record("start")
    for name in works:
        record.figure(f"{name}, processor's time", seconds[name], "s")
        record.figure(f"{name}, by the clock", waited[name], "s")
    for name, peer in (("momentseek --help", "import click"), ("a cold search of a small library", NUMPY)):
        record.ratio(name, seconds[name], peer, seconds[peer])
    record.save()


if __name__ == "__main__":
    main()
