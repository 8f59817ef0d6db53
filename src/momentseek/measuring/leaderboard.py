"""A leaderboard of result cards, with one table per combination of data and rules."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.reports import Cell, Table, count, decimals, markdown_text
from momentseek.measuring.cards import HASH_LETTERS, ResultCard, read_card
from momentseek.measuring.compare import compare, unique_labels
from momentseek.measuring.comparison import LETTERS, Comparison
from momentseek.measuring.measures import MEASURES, parse_all
from momentseek.measuring.result import Evaluation

PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #111 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #ccc }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left }
p { color: #444 }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #151515 } p { color: #bbb } }
"""


@dataclass(frozen=True, eq=False)
class LeaderboardGroup:
    """Cards with the same data, protocol, options and rule for missing queries, the best first."""

    cards: tuple[ResultCard, ...]
    measures: tuple[str, ...]
    alpha: float

    @property
    def title(self) -> str:
        """The data and the rules that all cards share."""
        head = self.cards[0]
        rules = "".join(f", {key} {value}" for key, value in head.options.items())
        return (
            f"{head.data['name']} ({head.data['fingerprint'][:HASH_LETTERS]}): "
            f"{count(head.data['queries'], 'query', 'queries')}, protocol {head.protocol}{rules}, "
            f"missing queries: {head.missing['policy']}"
        )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The systems' names, with a number added to repeated ones."""
        return unique_labels([card.system for card in self.cards])

    @cached_property
    def comparison(self) -> Comparison | None:
        """Tests between all cards that have values of every query; None if there are fewer than two such cards."""
        tested = [card for card in self.cards if card.values][: len(LETTERS)]
        shared = [name for name in self.measures if _base(name) in MEASURES]  # a plug-in's measure may be unknown here
        shared = [name for name in shared if all(name in card.values for card in tested)]
        queries = {tuple(sorted(card.query_ids)) for card in tested}
        if len(tested) < 2 or not shared or len(queries) > 1:
            return None
        return compare([_evaluation(card, self._label(card), shared) for card in tested], alpha=self.alpha)

    def _label(self, card: ResultCard) -> str:
        return self.labels[self.cards.index(card)]

    def beaten(self, card: ResultCard, measure: str) -> str:
        """Return the letters of the systems that this one is significantly better than."""
        found, label = self.comparison, self._label(card)
        if found is None or label not in found.runs or measure not in found.names:
            return ""
        return found.beaten(measure, label)

    def letter(self, card: ResultCard) -> str:
        """Return the letter that stands for this system in the table; empty if it was not tested."""
        found, label = self.comparison, self._label(card)
        return found.letter(label) if found is not None and label in found.runs else ""

    def table(self) -> Table:
        """Return a table with one row per system, the best first."""
        percent = self.cards[0].percent
        titles = [next(c.figures[m].title for c in self.cards if m in c.figures) for m in self.measures]
        rows: list[list[str | Cell]] = []
        best = {m: self._best(m) for m in self.measures}
        for card in self.cards:
            row: list[str | Cell] = [self.letter(card), self._label(card)]
            for measure in self.measures:
                figure = card.figures.get(measure)
                value = float("nan") if figure is None else figure.value
                shown = decimals(100 * value, 2) if percent else decimals(value, 4)
                bold = figure is not None and figure.value == best[measure]
                row.append(Cell(shown, bold=bold, raised=self.beaten(card, measure)))
            rows.append([*row, card.run["sha256"][:HASH_LETTERS], card.version])
        return Table(["", "system", *titles, "run", "version"], rows, align="llr")

    def _best(self, measure: str) -> float:
        values = [card.figures[measure].value for card in self.cards if measure in card.figures]
        return min(values, default=np.nan) if is_error(measure) else max(values, default=np.nan)

    def notes(self) -> list[str]:
        """Return notes on how to read the letters, and on the judges and costs of single cards."""
        found = []
        if self.comparison is not None:
            found.append(
                f"Raised letters: significantly better than that system (paired randomisation test, Holm-corrected, "
                f"p ≤ {self.alpha:g}{', videos exchanged as a whole' if self.comparison.videos else ''})."
            )
            if untested := [self._label(c) for c in self.cards if not self.letter(c)]:
                found.append(f"Not tested, because their cards lack values by query: {', '.join(untested)}.")
        elif len(self.cards) > 1:
            found.append("Not tested: fewer than two cards have values of the same queries.")
        for card in self.cards:
            if judges := card.data.get("judges"):
                found.append(f"{self._label(card)}: {judges}.")
            if card.cost:
                words = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in card.cost.items())
                found.append(f"{self._label(card)}: cost: {words.removeprefix('said ')}.")
        return found


def is_error(measure: str) -> bool:
    """Whether a smaller figure of a measure is better; False for a measure that is not known here.

    >>> is_error("FalseAlarm[level=0.5]"), is_error("mIoU"), is_error("Mine@3")
    (True, False, False)
    """
    return _base(measure) in MEASURES and MEASURES[_base(measure)].LOWER_IS_BETTER


def _base(measure: str) -> str:
    return measure.partition("[")[0].partition("@")[0]


def _evaluation(card: ResultCard, label: str, measures: Sequence[str]) -> Evaluation:
    """Convert a card to an evaluation with sorted queries; each has one dummy moment, which names its video."""
    order = sorted(range(len(card.query_ids)), key=card.query_ids.__getitem__)
    ids = tuple(card.query_ids[i] for i in order)
    videos = [f"video {card.clusters[i] if card.clusters else i}" for i in order]
    n = len(ids)
    return Evaluation(
        protocol=card.protocol,
        run=label,
        query_ids=ids,
        queries=None,
        measures=tuple(parse_all(measures, card.options)),
        values=np.array([[card.values[m][i] for m in measures] for i in order], dtype=np.float64).reshape(n, -1),
        percent=card.percent,
        judgements=Judgements.from_groups(ids, [1] * n, videos, np.zeros(n), np.ones(n)),
    )


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """All groups, the largest first, and notes on the files read."""

    groups: tuple[LeaderboardGroup, ...]
    notes: tuple[str, ...]

    def render(self, style: str) -> str:
        """Render every group's table with its notes, as ``text``, ``markdown`` or an ``html`` page."""
        if style == "html":
            return self._page()
        escape = markdown_text if style == "markdown" else str
        blocks = []
        for group in self.groups:
            title = f"## {escape(group.title)}" if style == "markdown" else group.title
            blocks += [title, group.table().render(style), *map(escape, group.notes())]
        return "\n\n".join([*blocks, *map(escape, self._why_apart())])

    def _why_apart(self) -> list[str]:
        if len(self.groups) < 2:
            return []
        heads = [group.cards[0].comparable for group in self.groups]
        kinds = ("data", "protocols", "options of the protocol", "rules for missing queries")
        apart = [kind for kind, column in zip(kinds, zip(*heads, strict=True), strict=True) if len(set(column)) > 1]
        return [f"The tables cannot be compared with each other: they have different {' and different '.join(apart)}."]

    def _page(self) -> str:
        body = []
        for group in self.groups:
            body.append(f"<h2>{html.escape(group.title)}</h2>{group.table().render('html')}")
            body += [f"<p>{html.escape(note)}</p>" for note in group.notes()]
        body += [f"<p>{html.escape(text)}</p>" for text in self._why_apart()]
        content = "\n".join(body)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Leaderboard</title>'
            '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
            f"content=\"default-src 'none'; style-src 'unsafe-inline'\"><style>{PAGE_STYLE}</style></head>"
            f"<body><h1>Leaderboard</h1>\n{content}\n</body></html>\n"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the groups with their systems in order, and all comparisons, unrounded."""
        return {
            "groups": [
                {
                    "title": group.title,
                    "data": dict(group.cards[0].data),
                    "protocol": group.cards[0].protocol,
                    "measures": list(group.measures),
                    "systems": [_entry(group, card) for card in group.cards],
                    "comparison": group.comparison.as_dict() if group.comparison else None,
                }
                for group in self.groups
            ],
            "notes": list(self.notes),
        }


def _entry(group: LeaderboardGroup, card: ResultCard) -> dict[str, Any]:
    figures: Mapping[str, Any] = card.as_json()["figures"]
    names = {name: list(group.beaten(card, name)) for name in group.measures}
    return {
        "system": card.system,
        "letter": group.letter(card),
        "figures": figures,
        "better_than": names,
        "run": dict(card.run),
        "cost": card.cost,
        "card": card.source,
    }


def build_leaderboard(paths: Sequence[str], measures: Sequence[str] = (), *, alpha: float = 0.05) -> Leaderboard:
    """Build the leaderboard of the cards in files and folders, ordered by the first measure.

    If two cards have the same run, data and rules, the later one counts.
    """
    notes: list[str] = []
    cards: dict[tuple[Any, ...], ResultCard] = {}
    for path in _files(paths):
        card = read_card(path)
        if card is None:
            notes.append(f"{path}: is no result card, and was left out")
            continue
        key = (*card.comparable, card.run["sha256"], card.system)
        if (before := cards.get(key)) is not None:
            notes.append(f"{path}: is of the same run as {before.source}; the later one counts")
            card = max(before, card, key=lambda c: c.made)
        cards[key] = card
    if not cards:
        raise MomentseekError(f"{', '.join(paths)}: holds no result card; make some with `momentseek evaluate --card`")
    groups: dict[tuple[str, ...], list[ResultCard]] = {}
    for card in cards.values():
        groups.setdefault(card.comparable, []).append(card)
    found = [_group(some, measures, alpha) for some in groups.values()]
    found.sort(key=lambda group: -len(group.cards))
    return Leaderboard(tuple(found), tuple(notes))


def _group(cards: Sequence[ResultCard], measures: Sequence[str], alpha: float) -> LeaderboardGroup:
    there = list(dict.fromkeys(name for card in cards for name in card.figures))
    wanted = [m.name for m in parse_all(measures)] if measures else there
    names = [name for name in wanted if name in there]
    if not names:
        raise MomentseekError(
            f"no card of {cards[0].data['name']} has {', '.join(wanted)}; there are {', '.join(there)}"
        )

    def rank(card: ResultCard) -> tuple[float, str]:
        figure = card.figures.get(names[0])
        if figure is None or np.isnan(figure.value):
            return np.inf, card.system
        return figure.value if is_error(names[0]) else -figure.value, card.system

    return LeaderboardGroup(tuple(sorted(cards, key=rank)), tuple(names), alpha)


def _files(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(path.rglob("*.json"))
        elif path.is_file():
            found.append(path)
        else:
            raise MomentseekError(f"{path}: there is no such file or folder of cards")
    return found
