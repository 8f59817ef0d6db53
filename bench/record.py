"""What a run of benchmarks measured, as one JSON file with the machine, the commit and every ratio.

A benchmark makes a `Record`, gives it the rounds of ours and of a peer, and saves it: into the file that the
environment variable BENCH_RECORD names (``make bench`` does), or nowhere. Each replaces its own part of the file.

    record = Record("scan")
    seconds = rounds({"ours": ours, "FAISS Flat": flat}, 7)
    record.ratio("exact, 100,000 smooth videos", seconds["ours"], "FAISS Flat", seconds["FAISS Flat"])
    record.figure("exact, 100,000 smooth videos, recall", [0.9995], "share", better="more")
    record.skip("LanceDB", "is not installed")
    record.save()

``bench/compare.py OLD NEW`` says what got slower beyond noise; ``bench/page.py`` writes the figures into
docs/measurements/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from momentseek.core.atomic import write_bytes
from momentseek.core.reports import text_table

VARIABLE = "BENCH_RECORD"
PACKAGES = ("numpy", "av", "onnxruntime", "torch", "faiss-cpu", "orjson")
Better = Literal["less", "more"]


@dataclass(frozen=True)
class Figure:
    """A measured number: the median of its rounds, with their quartiles (of fewer than four, the least and greatest).

    A ratio says how many times as fast as ``peer`` ours is (theirs / ours, round by round), and has the median seconds
    of both.
    """

    name: str
    value: float
    low: float
    high: float
    rounds: int
    unit: str
    better: Better = "more"
    peer: str = ""
    ours_seconds: float | None = None
    peer_seconds: float | None = None

    def __str__(self) -> str:
        """The figure in a table.

        >>> print(Figure("exact", 6.12, 5.5, 7.04, 5, "×"), Figure("recall", 0.9995, 0.9995, 0.9995, 1, "share"))
        6.1 × [5.5, 7.0] 0.9995 share
        """
        spread = "" if self.low == self.high else f" [{digits(self.low)}, {digits(self.high)}]"
        return f"{digits(self.value)} {self.unit}{spread}"


class Record:
    """The figures of one benchmark, printed at its end and kept for comparing."""

    def __init__(self, bench: str) -> None:
        self.bench = bench
        self.figures: dict[str, Figure] = {}
        self.skipped: dict[str, str] = {}

    def ratio(self, name: str, ours: Sequence[float], peer: str, theirs: Sequence[float]) -> Figure:
        """How many times as fast as a peer ours is, from seconds of rounds that were run in turns."""
        each = [b / max(a, 1e-12) for a, b in zip(ours, theirs, strict=True)]
        found = Figure(
            f"{name} / {peer}", statistics.median(each), *spread(each), len(each), "×", "more", peer,
            statistics.median(ours), statistics.median(theirs),
        )  # fmt: skip
        return self._keep(found)

    def figure(self, name: str, values: Sequence[float], unit: str, better: Better = "less") -> Figure:
        """Another number, of one or more rounds: seconds, megabytes, a recall."""
        found = Figure(name, statistics.median(values), *spread(values), len(values), unit, better)
        return self._keep(found)

    def skip(self, peer: str, reason: str) -> None:
        """Note that a peer was not measured, and why."""
        self.skipped[peer] = reason
        print(f"{peer} {reason}: not measured")

    def save(self) -> None:
        """Print the ratios, and put them into the file that is asked for, in place of this benchmark's earlier ones."""
        if self.figures:
            rows = [[f.name, str(f), str(f.rounds)] for f in self.figures.values()]
            print("\n" + text_table([self.bench, "median [quartiles]", "rounds"], rows), flush=True)
        if not (name := os.environ.get(VARIABLE)):
            return
        path = Path(name)
        content = load_record(path) if path.is_file() else {"benches": {}}
        content["machine"] = machine()
        content["benches"][self.bench] = {
            "commit": commit(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
            "figures": [asdict(f) for f in self.figures.values()],
            "skipped": self.skipped,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())

    def _keep(self, figure: Figure) -> Figure:
        if figure.name in self.figures:
            raise ValueError(f"{self.bench}: two figures are called {figure.name!r}")
        self.figures[figure.name] = figure
        return figure


def rounds(
    works: Mapping[str, Callable[[], object]], count: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each work in each round. In a round the works take turns, so that a busy machine slows all of them.

    ``clock`` may be `time.process_time`, or `family_time` where other processes do part of the work.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(count):
        for name in works if turn % 2 == 0 else reversed(list(works)):
            begun = clock()
            works[name]()
            seconds[name].append(clock() - begun)
    return seconds


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The quartiles of some rounds; the least and the greatest where there are fewer than four.

    >>> spread([1.0, 2.0, 3.0]), spread([1.0, 2.0, 3.0, 4.0, 50.0])
    ((1.0, 3.0), (2.0, 4.0))
    """
    if len(values) < 4:
        return min(values), max(values)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def family_time() -> float:
    """Processor seconds of this process and its children: those that have ended, and on Linux those that live."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system + sum(map(_child_time, _stat_files()))


def _stat_files() -> list[Path]:
    return list(Path("/proc").glob("[0-9]*/stat"))


def _child_time(stat: Path) -> float:
    """Seconds of a process, if it is a child of this one."""
    try:
        fields = stat.read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    mine = int(fields[1]) == os.getpid()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if mine else 0.0


def load_record(path: Path) -> dict[str, Any]:
    """A file that benchmarks wrote; what is none ends the program with one sentence."""
    try:
        content = json.loads(path.read_text())
        figures_of(content)
    except OSError as e:
        raise SystemExit(f"{path}: cannot be read ({e.strerror}); make it with: make bench") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SystemExit(f"{path}: is no record of benchmarks; make one with: make bench") from None
    return dict(content)


def figures_of(content: dict[str, Any]) -> dict[str, dict[str, Figure]]:
    """The figures of a record, by benchmark and name."""
    return {bench: {f["name"]: Figure(**f) for f in part["figures"]} for bench, part in content["benches"].items()}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def commit() -> str:
    """The commit of the working copy, with a plus if files differ from it; empty outside of one."""
    folder = Path(__file__).parent

    def ask(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        name = ask("rev-parse", "--short=12", "HEAD")
        return name + "+" if name and ask("status", "--porcelain", "--untracked-files=no") else name
    except OSError:
        return ""


def digits(value: float) -> str:
    """A number with as many digits as anybody needs.

    >>> digits(1234.5), digits(61.23), digits(6.123), digits(0.6123), digits(0.9995), digits(0.0)
    ('1,234', '61', '6.1', '0.61', '0.9995', '0')
    """
    if value == 0:
        return "0"
    if abs(value) >= 10:
        return f"{value:,.0f}"
    if 0.99 < abs(value) < 1:
        return f"{value:.4f}".rstrip("0")
    return f"{value:.2g}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
