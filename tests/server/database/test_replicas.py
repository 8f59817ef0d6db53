"""Replicas of Ray Serve: one more begins while many requests wait, all answer alike, and share what people keep."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from momentseek.server.ray_serve import application

TOKEN = "a token that is long enough"
ADDRESS = "http://127.0.0.1:8000/api/v1"
CLIENTS = 48


def ask(path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON of an answer."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{ADDRESS}{path}", data, headers, method="GET" if body is None else "PUT")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.figures
@pytest.mark.xdist_group("ray")
def test_a_second_replica_begins_under_load(shared: Path, database: str) -> None:
    pytest.importorskip("aiohttp")
    serve = pytest.importorskip("ray.serve")
    from momentseek.cluster.connection import join_cluster

    told, failed = Counter[str](), Counter[str]()
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            try:
                told[json.dumps(ask("/search?q=said%3Arunning")["hits"])] += 1
            except OSError as e:  # too many at a time is refused with a word, which is no wrong answer
                failed[str(getattr(e, "code", e))] += 1

    def replicas() -> int:
        states = serve.status().applications["films"].deployments["momentseek"].replica_states
        return int(states.get("RUNNING", 0))

    with join_cluster("local"):
        args = {"library": str(shared / "library"), "replicas": "2", "token": TOKEN, "database": database}
        args["hosts"] = "127.0.0.1"
        serve.run(application(args), name="films", route_prefix="/")
        try:
            right = ask("/search?q=said%3Arunning")["hits"]
            assert (replicas(), len(right) > 0) == (1, True)
            ask("/shelf/searches", {"person": "ann", "query": "a red dog"})
            clients = [threading.Thread(target=search) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            begun = time.monotonic()
            while replicas() < 2 and time.monotonic() - begun < 180:
                time.sleep(1)
            took = time.monotonic() - begun
            assert replicas() == 2
            stop.wait(5)
            stop.set()
            for client in clients:
                client.join()
            print(f"a second replica after {took:.0f} s, {sum(told.values())} answers, {dict(failed)} refused")
            assert list(told) == [json.dumps(right)]
            assert set(failed) <= {"429", "503"}
            kept = [ask("/shelf?person=ann") for _ in range(20)]  # of either replica
            assert all(one == kept[0] for one in kept)
            assert "a red dog" in json.dumps(kept[0])
        finally:
            stop.set()
            serve.shutdown()
