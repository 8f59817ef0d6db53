"""How well each localiser finds moments on curves with known truth, and how long it takes.

    python bench/localise.py [--videos 150] [--quick]

1. One video: R@1 at IoU 0.5 and 0.7 and mean IoU of the first span, in ten conditions of four worlds (bench/curves.py);
   with several moments in a video the first span may be any of them, and "all" says how many of them are among the
   best five spans at IoU 0.5.
2. A collection: sixty videos, three of which hold the moment; the spans of all ranked together.
3. Milliseconds per curve by length, and a video of ten hours.

All is generated from seeds. The settings of `scenes` were chosen on seeds below 200; this runs on seeds from 30,000 on.
"""

from __future__ import annotations

import argparse
import resource
import time
import zlib
from dataclasses import replace

import numpy as np

from curves import CLIP, WORLDS, Made, World, collection
from momentseek.core.moments.moment import iou
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, localise
from record import Record

SEED = 30_000
NAMES = ["scenes", "height", "tag", "contrast", "merge", "watershed", "window", "whole"]
TRAINED = ("learned", "map")
"""Those that need a trained model, and have nothing to say of these curves."""
PLAIN = World()
CONDITIONS = {
    "plain": PLAIN,
    "little noise": replace(PLAIN, noise=0.25),
    "much noise": replace(PLAIN, noise=0.8),
    "drift": replace(PLAIN, drift=1.0),
    "skewed noise": replace(PLAIN, skew=1.0),
    "three moments": replace(PLAIN, intervals=3),
    "no cuts": replace(PLAIN, cuts=False),
    "scores alone": replace(PLAIN, cuts=False, vectors=False),
    "25 clips": replace(PLAIN, clips=25),
    "400 clips": replace(PLAIN, clips=400),
}


def videos(name: str, condition: str, count: int) -> list[Made]:
    tag = zlib.crc32(f"{name}/{condition}".encode())
    return [WORLDS[name](np.random.default_rng([SEED + i, tag]), CONDITIONS[condition]) for i in range(count)]


def overlaps(spans: Proposals, truth: list[tuple[float, float]]) -> np.ndarray:
    """(spans, truths) IoU."""
    return (
        np.stack([iou(spans.start, spans.end, a, b) for a, b in truth], axis=1) if truth else np.zeros((len(spans), 1))
    )


def judged(name: str, made: list[Made]) -> tuple[float, float, float, float]:
    tables = [overlaps(localise(m.curve, name), m.truth) for m in made]
    first = np.array([t[0].max() for t in tables])
    found = np.concatenate([t.max(0) >= 0.5 for t in tables])
    return float((first >= 0.5).mean()), float((first >= 0.7).mean()), float(first.mean()), float(found.mean())


def single(count: int) -> float:
    """Print the table; R@1 at IoU 0.7 of the first localiser over all conditions."""
    print(f"1. One video: R@1 at IoU .5 / .7, mean IoU | all, in percent ({count} videos per row)\n")
    print(" " * 24 + "".join(f"{n:>17}" for n in NAMES))
    rows, leads = [], 0
    for world in WORLDS:
        for condition in CONDITIONS:
            made = videos(world, condition, count)
            figures = np.array([judged(n, made) for n in NAMES])
            rows.append(figures)
            leads += bool(figures[0, 1] >= figures[1:, 1].max())
            print(f"{world:<9}{condition:<15}" + line(figures), flush=True)
    for i, world in enumerate(WORLDS):
        part = rows[i * len(CONDITIONS) : (i + 1) * len(CONDITIONS)]
        print(f"{world:<9}{'mean':<15}" + line(np.mean(part, axis=0)))
    print(f"{'all':<9}{'mean':<15}" + line(np.mean(rows, axis=0)))
    print(f"\n{NAMES[0]} leads at .7 in {leads} of {len(rows)} conditions\n")
    return float(np.mean(rows, axis=0)[0, 1])


def line(figures: np.ndarray) -> str:
    return "".join(f"{'{:.0f}/{:.0f} {:.0f}|{:.0f}'.format(*(100 * f)):>17}" for f in figures)


def together(count: int) -> None:
    print(f"2. Sixty videos, three hold the moment, all spans ranked together ({count} collections per world)\n")
    print(f"{'':<12}{'R@1 .5':>8}{'R@1 .7':>8}{'R@5 .5':>8}{'R@5 .7':>8}{'right video first':>20}")
    found: dict[str, list[tuple[bool, ...]]] = {n: [] for n in NAMES}
    for world, maker in WORLDS.items():
        for i in range(count):
            made = collection(np.random.default_rng([SEED + i, zlib.crc32(world.encode())]), maker, PLAIN)
            for name in NAMES:
                spans = [localise(m.curve, name) for m in made]
                best = np.concatenate([overlaps(s, m.truth).max(1) for s, m in zip(spans, made, strict=True)])
                holds = np.concatenate([[bool(m.truth)] * len(s) for s, m in zip(spans, made, strict=True)])
                order = np.argsort(-np.concatenate([s.score for s in spans]), kind="stable")[:5]
                o = best[order]
                found[name].append((o[0] >= 0.5, o[0] >= 0.7, o.max() >= 0.5, o.max() >= 0.7, bool(holds[order[0]])))
    for name in NAMES:
        print(f"{name:<12}" + "{:8.0f}{:8.0f}{:8.0f}{:8.0f}{:20.0f}".format(*(100 * np.mean(found[name], axis=0))))
    print()


def timed(count: int, record: Record) -> None:
    print("3. Milliseconds per curve, median, 64-d vectors and cuts: processor time; for 100 clips also by the clock\n")
    lengths = (20, 100, 400, 24_000)
    print(f"{'clips':<12}" + "".join(f"{n:>10,}" for n in lengths) + f"{'100, clock':>14}")
    rng = np.random.default_rng(SEED)
    ten_hours = [long_curve(rng) for _ in range(3)]
    ours: dict[int, list[float]] = {}
    for name in NAMES:
        row, clock = [], {}
        for clips in lengths:
            made = (
                [
                    WORLDS["plateaus"](np.random.default_rng([SEED, i]), replace(PLAIN, clips=clips))
                    for i in range(count)
                ]
                if clips <= 400
                else []
            )
            curves = [m.curve for m in made] or ten_hours
            localise(curves[0], name)
            spent = []
            for curve in curves:
                begin = time.process_time(), time.perf_counter()
                localise(curve, name)
                spent.append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
            cpu, clock[clips] = 1000 * np.median(spent, axis=0)
            row.append(cpu)
            each = [seconds for seconds, _ in spent]
            if name == NAMES[0]:
                ours[clips] = each
                record.figure(f"{name}, {clips:,} clips, processor's time", [1e3 * s for s in each], "ms")
            elif name == "window":
                record.ratio(f"{NAMES[0]}, {clips:,} clips", ours[clips], name, each)
        print(f"{name:<12}" + "".join(f"{ms:>10.2f}" for ms in row) + f"{clock[100]:>14.2f}")
    print(f"\npeak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def long_curve(rng: np.random.Generator) -> Curve:
    """Ten hours of noise with three moments."""
    scores = 0.2 + 0.02 * rng.normal(size=24_000)
    for at in (700, 12_000, 23_000):
        scores[at : at + 20] += 0.06
    vectors = rng.normal(size=(24_000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Curve.regular(scores, CLIP, features=vectors, shots=np.sort(rng.uniform(0, 36_000, 5000)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=150, help="videos per condition")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    options = parser.parse_args()
    assert {*NAMES, *TRAINED} == set(LOCALISERS), "a localiser is not listed"
    count = 15 if options.quick else options.videos
    record = Record("localise")
    record.figure("scenes, R@1 at IoU 0.7, mean of all conditions", [single(count)], "share", "more")
    together(max(2, count // 6))
    timed(max(10, count // 3), record)
    record.save()


if __name__ == "__main__":
    main()
