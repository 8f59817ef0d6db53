"""Layouts of many videos at once are those of each alone."""

from __future__ import annotations

import numpy as np

from momentseek.search.localise.height import build_layouts, scene_edges
from momentseek.search.localise.localiser import Curve
from momentseek.search.localise.scenes import edge_times


def test_layouts_of_many_videos_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 30, 300)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = rng.normal(size=(int(offsets[-1]), 6)).astype(np.float32)
    seconds = 1.5
    durations = seconds * (sizes - 1) + rng.choice([0.0, 0.2, 0.75, 1.5, 40.0], len(sizes))  # some longer than clips
    shots = [np.sort(rng.choice([rng.uniform(0, d + 2, 5), [0.75, 2.25, 1.5, 3.0, 3.75]])) for d in durations]
    shots[7] = np.zeros(0)
    found = build_layouts(rows, offsets, durations.tolist(), [some.tolist() for some in shots], seconds)
    for at, layout in enumerate(found):
        edges = np.arange(sizes[at] + 1) * seconds
        edges[-1] = durations[at] if durations[at] > edges[-2] else edges[-1]
        part = rows[offsets[at] : offsets[at + 1]]
        curve = Curve(np.zeros(len(part), np.float32), edges, part, shots[at])
        assert layout.times.tolist() == edge_times(curve).tolist()
        assert layout.middles.tolist() == curve.middles.tolist()
        assert layout.edges.tolist() == scene_edges(curve).tolist()
