"""Write the figures of a record into docs/measurements/benchmarks.md, between the marks that are there for them.

    python bench/page.py [RECORD] [--check]

The page explains by hand what was measured; between ``<!-- record: BENCH -->`` and ``<!-- end -->`` stand the figures
of that benchmark in bench/record.json, and nothing else. With RECORD, its benchmarks first replace those in
bench/record.json: after ``make bench``, ``python bench/page.py artefacts/bench.json``. --check writes nothing and ends
with 1 if the page is not what the record says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.reports import markdown_table
from record import Figure, digits, load_record

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "bench" / "record.json"
PAGE = ROOT / "docs" / "measurements" / "benchmarks.md"
_SIZE = re.compile(r"([\d,]+ (?:videos|files)), (.*)")
_BLOCK = re.compile(r"(<!-- record: (\S+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def page(text: str, record: dict[str, Any]) -> str:
    """The page with the record's figures in the places for them; a benchmark nobody has run says so."""
    return _BLOCK.sub(lambda found: found[1] + block(found[2], record) + found[3], text)


def block(bench: str, record: dict[str, Any]) -> str:
    """The figures of one benchmark as Markdown."""
    if bench == "machine":
        return _machine_text(record["machine"])
    part = record["benches"].get(bench)
    if part is None:
        return "Not in the record yet: `make bench` measures it.\n"
    figures = [Figure(**f) for f in part["figures"]]
    said = []
    if ratios := [f for f in figures if f.peer]:
        said.append(markdown_table(["ratio", "ours, s", "peer, s", "times as fast", "rounds"], _ratio_rows(ratios)))
    others = [f for f in figures if not f.peer]
    if bench == "growth" and (sizes := _size_table(others)) is not None:
        said.append(sizes)
    elif others:
        rows = [[f.name, str(f), str(f.rounds)] for f in others]
        said.append(markdown_table(["figure", "median [quartiles]", "rounds"], rows))
    skipped = "".join(f" {peer} {reason}." for peer, reason in part["skipped"].items())
    load = "" if part["load"] is None else f", load {part['load']}"
    said.append(f"Measured {part['at'][:10]} at commit {part['commit'] or '(none)'}{load}.{skipped}")
    return "\n" + "\n\n".join(said) + "\n\n"


def _size_table(figures: list[Figure]) -> str | None:
    """Figures that were measured at several sizes of a library, a column for each; None unless all are such.

    >>> print(_size_table([Figure(f"{n} videos, search", 2.5, 2.5, 2.5, 1, "ms") for n in ("1,000", "10,000")]))
    | figure | 1,000 videos | 10,000 videos |
    |:---|---:|---:|
    | search, ms | 2.5 | 2.5 |
    """
    found = [(_SIZE.fullmatch(f.name), f) for f in figures]
    table: dict[str, dict[str, str]] = {}
    for match, figure in found:
        if match is None:
            return None
        name = match[2] if figure.unit in match[2].replace(",", "").split() else f"{match[2]}, {figure.unit}"
        table.setdefault(name, {})[match[1]] = digits(figure.value)
    sizes = list(dict.fromkeys(match[1] for match, _ in found if match is not None))
    if len(sizes) < 2:
        return None
    rows = [[name, *(held.get(size, "") for size in sizes)] for name, held in table.items()]
    return markdown_table(["figure", *sizes], rows)


def _ratio_rows(ratios: list[Figure]) -> list[list[str]]:
    return [
        [f.name, _seconds(f.ours_seconds), _seconds(f.peer_seconds), str(f).replace(f" {f.unit}", ""), str(f.rounds)]
        for f in ratios
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else digits(value)


def _machine_text(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"\n{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GiB, {machine['system']}, "
        f"Python {machine['python']}, {packages}.\n\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, nargs="?")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    record = load_record(RECORD)
    if options.record is not None:
        fresh = load_record(options.record)
        record = {"machine": fresh["machine"], "benches": {**record["benches"], **fresh["benches"]}}
    text = PAGE.read_text()
    new = page(text, record)
    if options.check:
        sys.exit(new != text and f"{PAGE.name} is not what the record says; run: python bench/page.py")
    if options.record is not None:
        write_bytes(RECORD, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    write_bytes(PAGE, new.encode())


if __name__ == "__main__":
    main()
