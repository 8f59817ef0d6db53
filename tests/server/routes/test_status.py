"""What the server says of a library's shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from s3_server import serve_s3

from momentseek.cluster.shard_client import LocalShards, ShardStatus
from momentseek.cluster.shards.making import make_elsewhere, split_library
from momentseek.library.location import library_folder


def test_a_library_in_one_piece_has_no_shards(client: TestClient) -> None:
    assert client.get("/api/v1/status").json()["shards"] == []


def test_shards_are_listed_with_their_videos_wherever_they_are(
    serve: Callable[..., TestClient], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split_library(place, tmp_path / "sharded", 2)
    client = serve(tmp_path / "sharded")
    here = client.get("/api/v1/status").json()["shards"]
    assert [one["name"] for one in here] == ["shard-000", "shard-001"]
    assert sum(one["videos"] for one in here) == 2
    assert all(one["replicas"] == one["answering"] == 1 and one["nodes"] == [] for one in here)
    away = [ShardStatus("shard-000", 2, 1, ("6f1c02ab93de",), 0.25), ShardStatus("shard-001", 2, 0, (), None)]
    monkeypatch.setattr(LocalShards, "status", lambda _: away)
    told = client.get("/api/v1/status").json()["shards"]
    assert [(one["replicas"], one["answering"], one["nodes"], one["lag"]) for one in told] == [
        (2, 1, ["6f1c02ab93de"], 0.25),
        (2, 0, [], None),
    ]


def test_a_library_in_object_storage_is_served_under_its_own_name(
    serve: Callable[..., TestClient], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "cache"))
    with serve_s3(monkeypatch, "bucket"):
        make_elsewhere("s3://bucket/archive", lambda into: split_library(place, into, 2))
        client = serve(library_folder("s3://bucket/archive"))
        told = client.get("/api/v1/status").json()
        assert (told["library"]["name"], told["library"]["videos"], len(told["shards"])) == ("archive", 2, 2)
        answer = client.get("/api/v1/search", params={"q": "red", "all": True}).json()
        here = serve(place).get("/api/v1/search", params={"q": "red", "all": True}).json()
        assert [(hit["start"], hit["score"]) for hit in answer["hits"]] == [
            (hit["start"], hit["score"]) for hit in here["hits"]
        ]
