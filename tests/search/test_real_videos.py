"""What a search finds on real videos with judged queries, if available (docs/measurements/search-quality.md)."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

import momentseek as ms
from momentseek.measuring.reliability import RIGHT_RELEVANCE

REAL = Path(__file__).parents[3] / "shared/data/real-videos"
pytestmark = [pytest.mark.figures, pytest.mark.skipif(not REAL.is_dir(), reason="no real videos here")]


@pytest.fixture(scope="module", params=["things", "things+clip"])
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("real") / "library"
    with ms.Library.open(folder, create=True, encoder=request.param) as opened:
        report = opened.add([REAL / "videos"])
        assert (report.added, report.failed) == (55, [])
        yield opened


@pytest.fixture(scope="module")
def right():
    """The videos that show what each query asks for."""
    found = defaultdict(set)
    for line in (REAL / "truth.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["relevance"] >= RIGHT_RELEVANCE:
            found[row["query"]].add(row["video"])
    return found


def test_the_right_video_is_first_and_strong_means_right(library, right):
    first = {query: library.search(query, k=1, all=True)[0] for query in right}
    found = {query: Path(hit.name).name in right[query] for query, hit in first.items()}
    strong = [found[query] for query, hit in first.items() if hit.level == "strong"]
    seen_twice = len(library.status().encoders[0].spec.split("+")) == 2
    assert sum(found.values()) / len(found) >= (0.82 if seen_twice else 0.60)
    assert len(strong) >= (15 if seen_twice else 10)
    assert sum(strong) / len(strong) >= 0.85


def test_things_that_are_nowhere_are_hardly_ever_strong(library):
    absent = [library.search(query, k=1) for query in json.loads((REAL / "absent.json").read_text())]
    assert sum(bool(hits) and hits[0].level == "strong" for hits in absent) <= 3


def test_things_that_are_nowhere_are_fair_at_most_half_of_the_time(library):
    absent = [library.search(query, k=1)[0].level for query in json.loads((REAL / "absent.json").read_text())]
    assert absent.count("fair") <= (15 if library.status().seen else 30)


def test_right_videos_are_seldom_called_unsure(library, right):
    unsure = [query for query in right if library.search(query, k=10)[0].level == "weak"]
    assert len(unsure) / len(right) <= 0.2


@pytest.mark.parametrize("query", ["a person", "a woman", "a man", "people walking", "a crowd"])
def test_people_are_found(library, query):
    if not library.status().seen:
        pytest.skip("no label is a person")
    assert library.search(query, k=1)[0].level != "weak"
