"""Result cards: one file with a run's scores, the data they were measured on and the rules used.

A card is a JSON file with a Markdown version for people. It identifies the run and the data by hashes, so that two
cards can be recognised as measured on the same data without sharing it. It has the values of every query for measures
that are means, so that others can test differences (``momentseek leaderboard``).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from momentseek import __version__
from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import NO_VALUE, Table, count, decimals, markdown_text, to_plain
from momentseek.measuring.evaluate import judged_by_models
from momentseek.measuring.formats.document import open_document
from momentseek.measuring.replicates import video_clusters
from momentseek.measuring.report import intervals
from momentseek.measuring.result import Evaluation, label_of

CARD_KIND = "momentseek result card"
CARD_VERSION = 1
HASH_LETTERS = 12
"""Number of characters of a hash that are displayed."""


@dataclass(frozen=True)
class CardFigure:
    """One measure on a card: its value with a 95 % interval, and how many queries counted."""

    value: float
    low: float
    high: float
    counted: int
    title: str


@dataclass(frozen=True, eq=False)
class ResultCard:
    """One system's result on one truth, under one protocol."""

    system: str
    run: Mapping[str, Any]
    """``file`` and ``sha256`` of the predictions."""
    data: Mapping[str, Any]
    """``name``, ``fingerprint``, numbers of ``queries``, ``moments`` and ``videos``; ``judges`` if models judged."""
    protocol: str
    options: Mapping[str, Any]
    missing: Mapping[str, Any]
    """``policy``, and how many ``queries`` had no predictions."""
    figures: Mapping[str, CardFigure]
    percent: bool = False
    notes: tuple[str, ...] = ()
    version: str = __version__
    commit: str | None = None
    machine: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, Any] | None = None
    made: str = ""
    query_ids: tuple[str, ...] = ()
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Measure → a value per query (NaN if it does not count); only measures that are means."""
    clusters: Sequence[int] | None = None
    """The number of each query's video; None if no two queries share one."""
    source: str = "(memory)"

    @property
    def comparable(self) -> tuple[str, str, str, str]:
        """What two cards must share to be compared: data, protocol, its options, and the policy for missing queries."""
        options = json.dumps(self.options, sort_keys=True)
        return self.data["fingerprint"], self.protocol, options, self.missing["policy"]

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file; NaN becomes null."""
        plain = {name: value for name, value in to_plain(self).items() if name not in ("source", "comparable")}
        return {"kind": CARD_KIND, "card_version": CARD_VERSION, **plain}


def fingerprint_truth(truth: Judgements | CaptionTable) -> str:
    """Return a hash of the queries, moments (to the millisecond) and levels, independent of file format and order.

    >>> one = Judgements.from_rows([("q", "v", 0, 5, 1), ("p", "w", 1, 2, 3)])
    >>> two = Judgements.from_rows([("p", "w", 1.00001, 2, 3), ("q", "v", 0, 5, 1)])
    >>> fingerprint_truth(one) == fingerprint_truth(two), len(fingerprint_truth(one))
    (True, 64)
    """
    rows: list[Any] = []
    for place, query in enumerate(truth.query_ids):
        part = slice(int(truth.offsets[place]), int(truth.offsets[place + 1]))
        if isinstance(truth, Judgements):
            marks: list[Any] = truth.relevance[part].tolist()
            extra: Any = None if truth.agreement is None else int(truth.agreement[place])
        else:
            marks, extra = [1] * (part.stop - part.start), sorted(truth.groups()[place])
        times = np.round(np.column_stack([truth.start[part], truth.end[part]]), 3).tolist()
        names = [truth.videos[v] for v in truth.video[part].tolist()]
        rows.append([query, extra, sorted(zip(names, times, marks, strict=True))])
    text = json.dumps(sorted(rows, key=lambda row: row[0]), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def build_card(
    result: Evaluation,
    run: str | os.PathLike[str],
    *,
    missing: str = "error",
    system: str | None = None,
    cost: str | None = None,
    seed: int = 0,
) -> ResultCard:
    """Build the card of an evaluation of the predictions in a file; ``cost`` is free text."""
    truth = result.judgements
    if truth is None:
        raise MomentseekError(f"{result.run}: the evaluation does not hold its truth, so no card can be made from it")
    data = Path(run).read_bytes()
    ends = intervals(result, seed=seed)[""]
    counted = (~np.isnan(result.values)).sum(axis=0).tolist()
    figures = {
        name: CardFigure(result.means[name], *ends[name], counted[i], result.titles[name])
        for i, name in enumerate(result.names)
    }
    about = {"name": getattr(truth, "variant", None) or label_of(result.truth), "fingerprint": fingerprint_truth(truth)}
    about |= {"queries": len(truth), "moments": len(truth.start), "videos": len(truth.videos)}
    judged = judged_by_models(truth) if isinstance(truth, Judgements) else None
    clusters = video_clusters(truth)
    means = [i for i, name in enumerate(result.names) if name not in result.parts]
    return ResultCard(
        system=system or result.run,
        run={"file": Path(run).name, "sha256": hashlib.sha256(data).hexdigest()},
        data=about | ({"judges": judged.partition(": ")[2]} if judged else {}),
        protocol=result.protocol,
        options=result.options,
        missing={"policy": missing, "queries": len(result.missing)},
        figures=figures,
        percent=result.percent,
        notes=result.notes,
        commit=git_commit(),
        machine=describe_machine(),
        cost=({"said": cost} if cost else {}) | count_tokens(data) or None,
        made=datetime.now(UTC).strftime("%Y-%m-%d"),
        query_ids=result.query_ids,
        values={result.names[i]: result.values[:, i].tolist() for i in means},
        clusters=None if clusters is None else clusters.tolist(),
    )


def count_tokens(data: bytes) -> dict[str, Any]:
    """Add up the tokens and seconds recorded in a file of a language model's answers; empty for other files."""
    totals: dict[str, float] = {}
    for line in data.splitlines() if b'"prompt_tokens"' in data else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        for key in ("prompt_tokens", "completion_tokens", "seconds"):
            if isinstance(record, dict) and isinstance(record.get(key), int | float):
                totals[key] = totals.get(key, 0) + record[key]
    return {key: round(value, 1) if key == "seconds" else int(value) for key, value in totals.items()}


def git_commit() -> str | None:
    """Return the commit of the working folder, with ``+`` if files have changed; None if it is not a repository."""
    try:
        asked = {"capture_output": True, "text": True, "timeout": 10, "check": True}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **asked).stdout.strip()  # type: ignore[call-overload]
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], **asked).stdout.strip()  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+" if changed else str(commit)


def describe_machine() -> dict[str, Any]:
    """Return what figures may depend on: system, processor and versions, but no names of machines or people."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def card_markdown(card: ResultCard) -> str:
    """Render a card as Markdown: the figures, then how they were measured."""
    digits = 2 if card.percent else 4
    scale = 100 if card.percent else 1

    def show(value: float) -> str:
        return decimals(value * scale, digits)

    rows = [
        [f.title, show(f.value), f"[{show(f.low)}, {show(f.high)}]", f"{f.counted:,}"] for f in card.figures.values()
    ]
    table = Table(["measure", "value", "95 % interval", "queries"], rows).render("markdown")
    data = f"{card.data['name']}: {count(card.data['queries'], 'query', 'queries')}, "
    data += f"{count(card.data['moments'], 'moment')} in {count(card.data['videos'], 'video')}; fingerprint "
    cost = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in (card.cost or {}).items())
    facts = {
        "Data": data + card.data["fingerprint"][:HASH_LETTERS],
        "Judges": card.data.get("judges", "people"),
        "Protocol": card.protocol,
        "Run": f"{card.run['file']}, SHA-256 {card.run['sha256'][:HASH_LETTERS]}",
        "Missing queries": f"{card.missing['queries']:,} ({card.missing['policy']})",
        "Cost": cost.removeprefix("said ") or NO_VALUE,
        "Made": f"{card.made} with momentseek {card.version}" + (f", commit {card.commit[:12]}" if card.commit else ""),
        "Machine": ", ".join(f"{key} {value}" for key, value in card.machine.items()),
    }
    lines = [f"- **{name}**: {markdown_text(str(text))}" for name, text in facts.items()]
    lines += [f"- Note: {markdown_text(note)}" for note in card.notes]
    return f"# {markdown_text(card.system)}\n\n{table}\n\n" + "\n".join(lines) + "\n"


def write_card(card: ResultCard, path: str | os.PathLike[str]) -> None:
    """Write the card as JSON to ``path`` and as Markdown next to it; create the folder if needed."""
    target = Path(path)
    if target.suffix != ".json":
        raise MomentseekError(f"{target}: a card is a .json file, with a .md next to it; call it card.json")
    text = json.dumps(card.as_json(), ensure_ascii=False, allow_nan=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    words = card_markdown(card).encode("utf-8", "replace")
    write_all({target: (text + "\n").encode("utf-8", "replace"), target.with_suffix(".md"): words})


def read_card(path: str | os.PathLike[str]) -> ResultCard | None:
    """Read the card in a file; None if the file is not a result card."""
    document = open_document(path)
    value = document.json if document.is_json else None
    if not isinstance(value, dict) or value.get("kind") != CARD_KIND:
        return None
    if value.get("card_version") != CARD_VERSION:
        raise MomentseekError(
            f"{path}: is a card of version {value.get('card_version')}; read it with a newer momentseek"
        )
    try:
        known = {name: value[name] for name in ResultCard.__dataclass_fields__ if name in value and name != "source"}
        figures = {str(name): _figure(entry) for name, entry in value["figures"].items()}
        values = {str(name): [_number(v) for v in column] for name, column in value["values"].items()}
        ids = tuple(map(str, value["query_ids"]))
        clusters = None if value.get("clusters") is None else [int(c) for c in value["clusters"]]
        card = ResultCard(
            **{**known, "figures": figures, "values": values, "query_ids": ids, "clusters": clusters},
            source=str(path),
        )
        lengths = {len(column) for column in values.values()} | ({len(clusters)} if clusters else set())
        if not (lengths <= {len(ids)} and isinstance(card.comparable[0], str) and card.run["sha256"]):
            raise ValueError("columns of different lengths")
        _ = card_markdown(card)  # fails if a part is missing
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise MomentseekError(f"{path}: is not a whole result card ({e}); make it with `evaluate --card`") from None
    return card


def _figure(entry: Mapping[str, Any]) -> CardFigure:
    value, low, high = (_number(entry[key]) for key in ("value", "low", "high"))
    return CardFigure(value, low, high, int(entry["counted"]), str(entry["title"]))


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
