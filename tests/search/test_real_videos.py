"""What a search finds on real videos with judged queries, where these are at hand: the figures of docs/searching.md."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

import momentseek as ms

REAL = Path(__file__).parents[3] / "shared/data/real-videos"
pytestmark = [pytest.mark.figures, pytest.mark.skipif(not REAL.is_dir(), reason="no real videos here")]


def test_the_right_video_is_first_and_strong_means_right(tmp_path):
    good = defaultdict(set)
    for line in (REAL / "truth.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["relevance"] >= 3:
            good[row["query"]].add(row["video"])
    with ms.Library.open(tmp_path / "library", create=True) as library:
        library.add([REAL / "videos"])
        first = {query: library.search(query, k=1, all=True)[0] for query in good}
        absent = [library.search(query, k=1) for query in json.loads((REAL / "absent.json").read_text())]
    right = {query: Path(hit.name).name in good[query] for query, hit in first.items()}
    strong = [right[query] for query, hit in first.items() if hit.level == "strong"]
    assert sum(right.values()) / len(right) >= 0.58
    assert sum(strong) / len(strong) >= 0.85
    assert sum(bool(hits) and hits[0].level == "strong" for hits in absent) <= 3
