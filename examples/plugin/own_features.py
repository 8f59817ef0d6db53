"""Write features and annotations as somebody might have them: folders of npz, and annotations as JSON Lines.

    python own_features.py films --videos 300

The layout is Moment-DETR's: two streams of the videos, ``slowfast/<video>.npz`` and ``clip/<video>.npz``, text as
``text/qid<N>.npz``, and annotations as QVHighlights has them. The content is simulated (`momentseek simulate`), and
``data.toml`` says so: this stands for your own extraction.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.models.features.data import Data
from momentseek.models.features.store import write_npz_folder

SPLITS = {"train": "train", "val": "val", "test": "test_ood"}
"""Names here → splits of the simulation."""
DATA_TOML = """name = "own films (simulated)"
simulated = true
clip_seconds = 1
preset = "films"

[features]
video = [{path = "slowfast", normalise = true}, {path = "clip", normalise = true}]
shortest = true

[splits.train]
truth = "train.jsonl"
query = {path = "text", key = "last_hidden_state"}

[splits.val]
truth = "val.jsonl"
query = {path = "text", key = "last_hidden_state"}

[splits.test]
truth = "test.jsonl"
query = {path = "text", key = "last_hidden_state"}
"""


def write_split(data: Data, split: str, file: Path, text: Path, first: int) -> int:
    """Write the annotations and the text features of a split, queries numbered from ``first``; returns the next."""
    found = data.split(split)
    truth = found.timed_truth
    lines = []
    for at, query in enumerate(truth.query_ids):
        rows = slice(truth.offsets[at], truth.offsets[at + 1])
        video = truth.videos[int(truth.video[rows][0])]
        windows = list(zip(truth.start[rows].tolist(), truth.end[rows].tolist(), strict=True))
        words = truth.queries[at] if truth.queries else ""
        about = {"qid": first + at, "query": words, "vid": video, "duration": found.durations[video]}
        lines.append(json.dumps({**about, "relevant_windows": windows}) + "\n")
        write_npz_folder(text, [(f"qid{first + at}", {"last_hidden_state": found.query.read(query)})])
    file.write_text("".join(lines))
    return first + len(truth.query_ids)


def main() -> None:
    """Simulate films, and write them in the layout of others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--videos", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        simulate_grounding(Path(room) / "films", GroundingSettings(videos=given.videos, video_dim=32, text_dim=24))
        with Data.open(Path(room) / "films") as data:
            assert data.video is not None
            given.folder.mkdir(parents=True, exist_ok=True)
            for name in data.video.names:
                rows = data.video.read(name)
                write_npz_folder(given.folder / "slowfast", [(name, {"features": rows[:, :20]})])
                write_npz_folder(given.folder / "clip", [(name, {"features": rows[:, 20:]})])
            number = 0
            for here, there in SPLITS.items():
                number = write_split(data, there, given.folder / f"{here}.jsonl", given.folder / "text", number)
    (given.folder / "data.toml").write_text(DATA_TOML)


if __name__ == "__main__":
    main()
