from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from edit_list_reader import read_edl, read_fcpxml
from fastapi.testclient import TestClient

from momentseek.search.hit import Hit
from momentseek.server.routes.export import replace_paths_by_names


@pytest.mark.parametrize("kind", ["csv", "json", "srt", "edl", "fcpxml", "html"])
def test_a_search_as_a_file(client: TestClient, kind: str) -> None:
    answer = client.get("/api/v1/export", params={"q": "green", "kind": kind})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith(f'attachment; filename="green.{kind}"')
    assert "one.mp4" in answer.text


def test_the_table_has_the_hits(client: TestClient) -> None:
    hits = client.get("/api/v1/search", params={"q": "green"}).json()["hits"]
    rows = list(csv.DictReader(io.StringIO(client.get("/api/v1/export", params={"q": "green", "kind": "csv"}).text)))
    assert [(r["video"], float(r["start"])) for r in rows] == [(h["name"], pytest.approx(h["start"])) for h in hits]


@pytest.mark.parametrize("kind", ["edl", "fcpxml"])
def test_a_selection_keeps_its_bounds_and_titles(client: TestClient, tmp_path: Path, kind: str) -> None:
    chosen = [
        {"video_id": 1, "start": 2.0, "end": 3.5, "title": "Dogs & <more>"},
        {"video_id": 2, "start": 1, "end": 2},
    ]
    answer = client.post("/api/v1/export", json={"kind": kind, "title": "Best", "hits": chosen})
    assert answer.status_code == 200
    edits = (read_edl if kind == "edl" else read_fcpxml)(answer.text).edits
    assert [(float(e.start / e.rate), float(e.end / e.rate)) for e in edits] == [(2.0, 3.5), (1.0, 2.0)]
    assert edits[0].title == "Dogs & <more>"


@pytest.mark.parametrize(("hits", "status"), [
    ([], 422), ([{"video_id": 99, "start": 0, "end": 1}], 404), ([{"video_id": 1, "start": 40, "end": 41}], 422),
    ([{"video_id": 1, "start": 2, "end": 1}], 422), ([{"video_id": 1, "start": 0, "end": 1, "path": "/etc"}], 422),
])  # fmt: skip
def test_selections_that_cannot_be(client: TestClient, hits: list[object], status: int) -> None:
    answer = client.post("/api/v1/export", json={"kind": "csv", "hits": hits})
    assert answer.status_code == status


def test_an_unknown_kind_is_refused(client: TestClient) -> None:
    assert client.get("/api/v1/export", params={"q": "x", "kind": "exe"}).status_code == 422


@pytest.mark.parametrize("kind", ["csv", "json", "srt", "edl", "fcpxml", "html"])
def test_where_files_lie_is_told_to_nobody_elsewhere(
    serve: Callable[..., TestClient], client: TestClient, shared: Path, kind: str
) -> None:
    token = "s3cret-token-of-the-owner"
    other = serve(host="192.0.2.1", token=token)
    other.headers["Authorization"] = f"Bearer {token}"
    chosen = {"kind": kind, "hits": [{"video_id": 1, "start": 1, "end": 2}, {"video_id": 2, "start": 1, "end": 2}]}
    here = client.get("/api/v1/export", params={"q": "green", "kind": kind}).text
    for answer in (
        other.get("/api/v1/export", params={"q": "green", "kind": kind}),
        other.post("/api/v1/export", json=chosen),
    ):
        assert answer.status_code == 200
        assert "one.mp4" in answer.text
        assert shared.name not in answer.text
        assert str(Path.cwd()) not in answer.text
        assert ("data:image/" in answer.text) == ("data:image/" in here)
    assert (shared.name in here) == (kind != "srt")


def test_videos_of_the_same_name_stay_apart() -> None:
    hits = [
        Hit(video_id=id, path=Path(f"/films/{id}/a.mp4"), name="a.mp4", start=0.0, end=1.0, peak=0.5, duration=9.0)
        for id in (4, 7, 4)
    ]
    assert [hit.path for hit in replace_paths_by_names(hits)] == [Path("/a.mp4"), Path("/7/a.mp4"), Path("/a.mp4")]
