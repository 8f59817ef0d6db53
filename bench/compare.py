"""Say what got slower, or otherwise worse, between two records of benchmarks beyond noise.

    python bench/compare.py OLD NEW [--all] [--json]

A figure changed if the quartiles of its rounds do not touch those of the other record and the medians lie more than
10 % apart (a third, where either has fewer than four rounds). Ratios are compared, which depend little on the machine;
seconds and megabytes only between records of one machine. Ends with 1 if anything is worse, with 0 if nothing is.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.reports import text_table
from record import Figure, figures_of, load_record

LEAST_CHANGE = 1.10
"""Times by which two medians differ at least if it is to count."""
LEAST_CHANGE_OF_FEW = 4 / 3
"""The same where a record has fewer than four rounds, which hardly say how noisy it was."""
ENOUGH_ROUNDS = 4
MACHINE_UNITS = ("s", "ms", "µs", "x real time", "MB", "GB")


@dataclass(frozen=True)
class Change:
    """How a figure moved: ``factor`` above 1 is better, and ``beyond`` says whether that is more than noise."""

    bench: str
    old: Figure
    new: Figure
    factor: float
    beyond: bool

    @property
    def verdict(self) -> str:
        """The change as a word."""
        if not self.beyond:
            return "as before"
        return "better" if self.factor > 1 else "worse"


def change(bench: str, old: Figure, new: Figure) -> Change:
    """Compare one figure of two records."""
    more = old.better == "more"
    if old.value > 0 and new.value > 0:
        factor = new.value / old.value if more else old.value / new.value
    else:
        factor = 1.0 if old.value == new.value else float(new.value > old.value) * 2 if more else 0.0
    least = LEAST_CHANGE if min(old.rounds, new.rounds) >= ENOUGH_ROUNDS else LEAST_CHANGE_OF_FEW
    apart = new.low > old.high or new.high < old.low
    return Change(bench, old, new, factor, apart and not 1 / least < factor < least)


def changes(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[Change], list[str]]:
    """The changes of all figures that both records have, and what cannot be compared."""
    same = old.get("machine") == new.get("machine")
    before, after = figures_of(old), figures_of(new)
    found, notes = [], []
    if not same:
        notes.append("the machines differ, so only ratios are compared")
    for bench, figures in before.items():
        for name, figure in figures.items():
            other = after.get(bench, {}).get(name)
            if other is None:
                notes.append(f"{bench}: {name} is not in the new record")
            elif same or figure.unit not in MACHINE_UNITS:
                found.append(change(bench, figure, other))
    return found, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--all", action="store_true", help="also what is as before")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found, notes = changes(load_record(options.old), load_record(options.new))
    worse = [c for c in found if c.verdict == "worse"]
    shown = sorted((c for c in found if options.all or c.beyond), key=lambda c: c.factor)
    if options.json:
        rows = [
            {"bench": c.bench, "name": c.old.name, "old": c.old.value, "new": c.new.value, "verdict": c.verdict}
            for c in shown
        ]
        print(json.dumps({"changes": rows, "notes": notes, "compared": len(found)}, indent=1))
    else:
        if shown:
            cells = [[c.bench, c.old.name, str(c.old), str(c.new), f"{c.factor:.2f}", c.verdict] for c in shown]
            print(text_table(["bench", "figure", "old", "new", "times as good", ""], cells))
        for note in notes:
            print(note)
        print(f"{len(found)} figures compared: {len(worse)} worse, {sum(c.verdict == 'better' for c in found)} better")
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
