"""How good a search is on real videos with judged queries: every localiser, and how far levels can be trusted.

    python bench/real_videos.py FOLDER... [--libraries DIR] [--localisers NAMES] [--figures DIR] [--sources FILE]
    python bench/real_videos.py FOLDER... --encoders things,clip,things+clip [--libraries DIR]
    python bench/real_videos.py FOLDER... --samplings quick,exact [--libraries DIR]

A FOLDER has ``videos/``, ``truth.jsonl`` (our native form; relevance 1 to 4, 3 and 4 count as right) and, if there are
things to ask for that are nowhere, ``absent.json`` (the first folder's goes for the others as well). Libraries are
made in DIR once, under the folder's name, with the default encoder, and kept. Printed: for every localiser the share
of queries whose first hit is in a right video (VR@1), R@1 and NDCG@10 at IoU 0.5 with 95 % bootstrap intervals; over
all folders but the first (films, say) the difference from the default, resampled by query; then right hits by level
and by score. ``--figures`` draws that.

``--encoders`` makes a library with each encoder instead, and prints how good each is, the difference from the last one
with its interval, the levels, and the processor seconds that adding took. ``--samplings`` does the same with ways to
sample the pictures (docs/library.md). Differences are resampled by the first folder's video that is judged best for a
query; at the end come those of all other folders together (films in several codecs, say).

``--sources`` (a JSON list of ``{"video", "repo"}``) asks whether the default localiser's settings are fitted to these
videos: its settings are chosen on moments of all sources but some, and measured on moments of those (five folds). A
moment of a film belongs to the source of its clip, which is found by query, relevance and length in the first folder.

What it does not show: other collections, other encoders, what two judges would say. Films share their pictures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import momentseek as ms
from momentseek.core.figures import legend_below, line_style, save_figures, subplots
from momentseek.core.reports import text_table
from momentseek.measuring.reliability import RIGHT_RELEVANCE, ReliabilityBin, bins_by_level
from momentseek.measuring.resampling import bootstrap_interval
from momentseek.media.decode import Sampling
from momentseek.search.confidence import LEVELS
from momentseek.search.engine import Engine
from momentseek.search.localise import height
from momentseek.search.localise.localiser import DEFAULT_LOCALISER, Curve
from momentseek.search.query import Query
from momentseek.search.streams.vision import build_curve, build_vision_query
from record import family_time

LOCALISERS = ("height", "watershed", "scenes", "contrast", "tag", "window", "merge", "whole")
MEASURES = ("VR@1", "R@1", "NDCG@10")
FOLDS = 5
GRID = {"HEIGHT_SHARE": (0.6, 0.65, 0.7, 0.75, 0.8), "EDGE_COST": (2.0, 4.0, 8.0), "NEIGHBOUR_CLIPS": (2, 4, 8)}
"""Settings of ``height`` that are chosen from."""


@dataclass(frozen=True)
class JudgedSet:
    """A folder of videos with judged queries, in an open library."""

    name: str
    library: ms.Library
    queries: dict[str, list[dict[str, Any]]]
    absent: list[str]
    seconds: float
    """Processor seconds that adding the videos took, those of other processes included."""


def read_set(
    folder: Path, libraries: Path, absent: Path, encoder: str | None = None, sampling: Sampling | None = None
) -> JudgedSet:
    queries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in (folder / "truth.jsonl").read_text().splitlines():
        row = json.loads(line)
        queries[row["query_id"]].append(row)
    name = "-".join(part for part in (folder.name, encoder, sampling) if part is not None)
    library = ms.Library.open(libraries / name, create=True, encoder=encoder)
    if sampling is not None:
        library.store.options = replace(library.store.options, sampling=sampling)
    begun = family_time()
    library.add([folder / "videos"])
    seconds = family_time() - begun
    nowhere = json.loads(absent.read_text()) if absent.exists() else []
    return JudgedSet(folder.name, library, dict(sorted(queries.items())), nowhere, seconds)


def overlap(hit: ms.Hit, row: dict[str, Any]) -> float:
    """IoU of a hit and a judged moment; 0 in another video."""
    if Path(hit.name).name != row["video"]:
        return 0.0
    return interval_overlap(hit.start, hit.end, row["start"], row["end"])


def interval_overlap(a: float, b: float, c: float, d: float) -> float:
    both = max(0.0, min(b, d) - max(a, c))
    return both / max(1e-9, b - a + d - c - both)


def right_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["relevance"] >= RIGHT_RELEVANCE]


def query_values(hits: list[ms.Hit], rows: list[dict[str, Any]]) -> list[float]:
    """VR@1, R@1 and NDCG@10 of one query."""
    good = right_rows(rows)
    first = Path(hits[0].name).name in {row["video"] for row in good}
    left, gains = list(rows), []
    for hit in hits[:10]:
        best = max(left, key=lambda row: overlap(hit, row), default=None)
        found = best is not None and overlap(hit, best) >= 0.5
        gains.append(best["relevance"] if found and best is not None else 0)
        if found and best is not None:
            left.remove(best)
    ideal = sorted((row["relevance"] for row in rows), reverse=True)[:10]
    discounts = 1 / np.log2(np.arange(2, 12))
    ndcg = float(discounts[: len(gains)] @ gains / (discounts[: len(ideal)] @ ideal))
    return [float(first), float(any(overlap(hits[0], row) >= 0.5 for row in good)), ndcg]


def measure(judged: JudgedSet, localiser: str) -> np.ndarray:
    """(queries, measures) of a localiser."""
    values = []
    for rows in judged.queries.values():
        hits = list(judged.library.search(rows[0]["query"], k=10, all=True, localiser=localiser))
        values.append(query_values(hits, rows) if hits else [0.0, 0.0, 0.0])
    return np.array(values)


def interval_text(low: float, high: float) -> str:
    return f"[{low:.2f}, {high:.2f}]"


def figures_text(values: np.ndarray, clusters: np.ndarray | None = None) -> list[str]:
    low, high = bootstrap_interval(values, clusters=clusters)
    return [f"{mean:.2f} {interval_text(a, b)}" for mean, a, b in zip(values.mean(axis=0), low, high, strict=True)]


def compare_localisers(sets: list[JudgedSet], names: list[str]) -> None:
    found = {(one.name, name): measure(one, name) for one in sets for name in names}
    for one in sets:
        print(f"\n{one.name}: {len(one.queries)} queries")
        rows = [[name, *figures_text(found[one.name, name])] for name in names]
        print(text_table(["localiser", *MEASURES], rows, align="llll"))
    films = sets[1:]
    if len(films) < 2 or DEFAULT_LOCALISER not in names:
        return
    shared = sorted(set.intersection(*(set(one.queries) for one in films)))
    print(f"\nmean of {', '.join(one.name for one in films)}, {len(shared)} queries; the default less each")
    rows = []
    mean = {
        name: np.mean([found[one.name, name][[list(one.queries).index(id) for id in shared]] for one in films], axis=0)
        for name in names
    }
    for name in names:
        rows.append(
            [
                name,
                *(f"{value:.2f}" for value in mean[name].mean(axis=0)),
                *figures_text(mean[DEFAULT_LOCALISER] - mean[name]),
            ]
        )
    print(text_table(["localiser", *MEASURES, *(f"default - it, {m}" for m in MEASURES)], rows, align="lrrrlll"))


Variants = dict[str, dict[str, Any]]
"""What is compared, by name: options for ``read_set``."""


def compare_variants(folders: Sequence[Path], libraries: Path, variants: Variants) -> None:
    last = list(variants)[-1]
    sources: dict[str, str] = {}
    apart: dict[str, list[np.ndarray]] = defaultdict(list)
    owners: list[str] = []
    for folder in folders:
        sets = {
            one: read_set(folder, libraries, folders[0] / "absent.json", **given) for one, given in variants.items()
        }
        found = {one: measure(judged, DEFAULT_LOCALISER) for one, judged in sets.items()}
        for id, judgements in sets[last].queries.items():
            sources.setdefault(id, max(judgements, key=lambda row: row["relevance"])["video"])
        own = [sources[id] for id in sets[last].queries]
        print(f"\n{folder.name}: {len(found[last])} queries")
        rows = []
        for one, judged in sets.items():
            if folder != folders[0]:
                apart[one].append(found[last] - found[one])
            first, ten = told_hits(judged)
            levels = [bins_by_level([(level, right) for level, _, right in hits], LEVELS) for hits in (first, ten)]
            strong = " ".join(f"{bins[-1].right} of {bins[-1].count}" for bins in levels)
            nowhere = [judged.library.search(query, k=1)[0].level for query in judged.absent]
            shown = f"{nowhere.count('strong')} strong, {nowhere.count('fair')} fair of {len(nowhere)}"
            less = figures_text(found[last] - found[one], np.unique(own, return_inverse=True)[1])
            rows.append([one, *figures_text(found[one]), *less, strong, shown, f"{judged.seconds:.0f}"])
        columns = [*MEASURES, *(f"last - it, {m}" for m in MEASURES), "strong right", "nowhere", "adding, s"]
        print(text_table(["", *columns], rows, align="l" + "l" * 8 + "r"), flush=True)
        owners += own if folder != folders[0] else []
    if len(folders) > 2:
        print(f"\n{len(folders) - 1} folders together: {len(owners)} queries")
        groups = np.unique(owners, return_inverse=True)[1]
        rows = [[one, *figures_text(np.concatenate(values), groups)] for one, values in apart.items()]
        print(text_table(["", *(f"last - it, {m}" for m in MEASURES)], rows, align="llll"))


Told = list[tuple[str, float, bool]]
"""Level, score and whether it is right, of hits."""


def told_hits(judged: JudgedSet) -> tuple[Told, Told]:
    """Of the first hits, and of all that are shown or would be: level, score, right; what is absent is never right."""
    first: Told = []
    all_hits: Told = []
    asked = [(rows[0]["query"], right_rows(rows)) for rows in judged.queries.values()]
    for query, good in [*asked, *((query, []) for query in judged.absent)]:
        hits = judged.library.search(query, k=10, all=True)
        told = [
            (
                hit.level,
                hit.streams["vision"].score if "vision" in hit.streams else 0.0,
                any(overlap(hit, row) > 0 for row in good),
            )
            for hit in hits
        ]
        first += told[:1]
        all_hits += told
    return first, all_hits


def bins_by_score(hits: Iterable[tuple[float, bool]], count: int = 5) -> list[ReliabilityBin]:
    """Bins of about as many hits each, by ascending score, named by the mean score of their hits."""
    given = sorted(hits)
    parts = [part for part in np.array_split(np.arange(len(given)), count) if len(part)]
    return [
        ReliabilityBin(
            f"{np.mean([given[at][0] for at in part]):.2f}", sum(given[at][1] for at in part.tolist()), len(part)
        )
        for part in parts
    ]


def draw_reliability(panels: dict[str, dict[str, Sequence[ReliabilityBin]]]) -> Any:
    """A panel for each title, in which each series of bins is a line of shares with their intervals."""
    figure, grid = subplots(1, len(panels), 3.4 * len(panels), 3.0)
    for axes, (title, series) in zip(grid[0], panels.items(), strict=True):
        for at, (name, bins) in enumerate(series.items()):
            shown = [(place, bin) for place, bin in enumerate(bins) if bin.share is not None]
            places = [place + 0.12 * (at - (len(series) - 1) / 2) for place, _ in shown]
            shares = [bin.right / bin.count for _, bin in shown]
            ends = [bin.interval for _, bin in shown]
            errors = [
                [share - low for share, (low, _) in zip(shares, ends, strict=True)],
                [high - share for share, (_, high) in zip(shares, ends, strict=True)],
            ]
            axes.errorbar(places, shares, errors, label=name, capsize=3, **line_style(at, lw=1))
        longest = max(series.values(), key=len)
        axes.set_xticks(range(len(longest)), [bin.name for bin in longest])
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(title)
        axes.set_ylabel("share of hits that are right")
        axes.grid(axis="y", linewidth=0.4)
    legend_below(figure, grid[0][0], ncols=2, fontsize=8)
    return figure


def save_reliability(panels: dict[str, dict[str, Sequence[ReliabilityBin]]], folder: str | Path) -> list[Path]:
    """Write the diagram as ``reliability.png`` and ``reliability.svg``."""
    return save_figures({"reliability": lambda: draw_reliability(panels)}, folder)


def show_reliability(sets: list[JudgedSet], folder: Path | None) -> None:
    told = [told_hits(one) for one in sets]
    groups = {sets[0].name: told[:1], "films": told[1:]} if len(sets) > 1 else {sets[0].name: told}
    panels: dict[str, dict[str, Any]] = {"level": {}, "score (cosine), fifths": {}}
    for name, some in groups.items():
        first = [hit for one, _ in some for hit in one]
        every = [hit for _, one in some for hit in one]
        for label, hits in ((f"{name}: first hits", first), (f"{name}: first ten", every)):
            levels = bins_by_level([(level, right) for level, _, right in hits], LEVELS)
            panels["level"][label] = levels
            scores = bins_by_score([(score, right) for _, score, right in hits])
            panels["score (cosine), fifths"][label] = scores
            print(f"\n{label}, {len(hits)} hits, things that are nowhere included")
            rows = [
                [each.name, str(each.right), str(each.count), f"{each.share or 0:.2f}", interval_text(*each.interval)]
                for each in (*levels, *scores)
            ]
            print(text_table(["", "right", "of", "share", "95 % interval"], rows, align="lrrrl"))
    if folder is not None:
        print(*save_reliability(panels, folder), sep="\n")


Curves = dict[tuple[str, int], tuple[Curve, float, float]]
"""The curve of a right video, with start and end of the judged moment, by query and row."""


def right_curves(judged: JudgedSet) -> Curves:
    """The query's curve on every video that holds a right moment, as a search draws it."""
    state = Engine(judged.library).state()
    ids = {Path(video.name).name: video for video in judged.library.videos()}
    found: Curves = {}
    for id, rows in judged.queries.items():
        parts = Query.parse(rows[0]["query"]).picture_parts
        asked = build_vision_query(state.vision, parts, (), partial(state.encoder.encode, "vision"))
        for at, row in enumerate(rows):
            if row["relevance"] >= RIGHT_RELEVANCE:
                curve = build_curve(state.vision, asked, ids[row["video"]])
                assert curve is not None
                found[id, at] = curve, row["start"], row["end"]
    return found


def is_found(curve: Curve, start: float, end: float) -> bool:
    """Whether the first span on a curve overlaps the moment by half."""
    spans = height.height(curve)
    return interval_overlap(float(spans.start[0]), float(spans.end[0]), start, end) >= 0.5


def moment_sources(sets: list[JudgedSet], sources: dict[str, str]) -> list[dict[tuple[str, int], str]]:
    """The source of each judged moment of each set."""
    clips = sets[0].queries

    def source(id: str, row: dict[str, Any]) -> str:
        if row["video"] in sources:
            return sources[row["video"]]
        length = row["end"] - row["start"]
        near = min(
            (clip for clip in clips[id] if clip["relevance"] == row["relevance"]),
            key=lambda clip: abs(min(clip["end"], 30.0) - clip["start"] - length),
        )
        return sources[near["video"]]

    return [
        {(id, at): source(id, row) for id, rows in one.queries.items() for at, row in enumerate(rows)} for one in sets
    ]


def cross_validate(sets: list[JudgedSet], sources: dict[str, str]) -> None:
    before = {name: getattr(height, name) for name in GRID}
    settings = list(itertools.product(*GRID.values()))
    owner = moment_sources(sets, sources)
    names = sorted(set(sources.values()))
    fold = {name: at % FOLDS for at, name in enumerate(sorted(names, key=lambda n: -list(sources.values()).count(n)))}
    right = np.zeros((len(settings), FOLDS, 2))
    curves = [right_curves(one) for one in sets]
    for at, values in enumerate(settings):
        for name, value in zip(GRID, values, strict=True):
            setattr(height, name, value)
        for some, own in zip(curves, owner, strict=True):
            for key, moment in some.items():
                right[at, fold[own[key]]] += is_found(*moment), 1
    for name, value in before.items():
        setattr(height, name, value)
    default = settings.index(tuple(before.values()))
    held = np.zeros(2)
    rows = []
    for left_out in range(FOLDS):
        others = np.delete(right, left_out, axis=1).sum(axis=1)
        best = int(np.argmax(others[:, 0] / others[:, 1]))
        held += right[best, left_out]
        usual = right[default, left_out]
        rows.append([
            str(left_out + 1), str(int(usual[1])), str(settings[best]), f"{right[best, left_out, 0] / usual[1]:.3f}",
            f"{usual[0] / usual[1]:.3f}",
        ])  # fmt: skip
    total = right[default].sum(axis=0)
    whole = right.sum(axis=1)
    shares = whole[:, 0] / whole[:, 1]
    print(f"\nfirst span of the right video at IoU 0.5, {len(names)} sources in {FOLDS} folds; {', '.join(GRID)}")
    print(text_table(["fold", "moments", "chosen on the others", "held out", "as it is"], rows, align="rrlrr"))
    print(f"chosen on the others {held[0] / held[1]:.3f}, as it is {total[0] / total[1]:.3f}, "
          f"all {len(settings)} settings {shares.min():.3f} to {shares.max():.3f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--libraries", type=Path, default=Path("libraries"))
    parser.add_argument("--localisers", default=",".join(LOCALISERS))
    parser.add_argument("--encoders", help="compare these instead of localisers")
    parser.add_argument("--samplings", help="compare these instead of localisers")
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--sources", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("MOMENTSEEK_TRANSCRIBE", "off")  # what is said is another question
    if args.encoders or args.samplings:
        encoders = {one: {"encoder": one} for one in (args.encoders or "").split(",") if one}
        samplings = {one: {"sampling": one} for one in (args.samplings or "").split(",") if one}
        compare_variants(args.folders, args.libraries, {**encoders, **samplings})
        return
    sets = [read_set(folder, args.libraries, args.folders[0] / "absent.json") for folder in args.folders]
    compare_localisers(sets, args.localisers.split(","))
    show_reliability(sets, args.figures)
    if args.sources:
        known = {row["video"]: row["repo"] for row in json.loads(args.sources.read_text())}
        cross_validate(sets, known)


if __name__ == "__main__":
    main()
