from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.library.paths import hold_lock
from momentseek.library.report import AddReport, IngestNote, IngestStep
from momentseek.server import jobs as module
from momentseek.server.jobs import JobOut, Jobs
from momentseek.server.routes.adding import stream_events


def _wait(client: TestClient, id: str) -> dict[str, Any]:
    for _ in range(2400):
        job: dict[str, Any] = client.get(f"/api/v1/jobs/{id}").json()
        if job["ended"] is not None:
            return job
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def _folder(client: TestClient, name: str) -> str:
    return next(f["id"] for f in client.get("/api/v1/folders").json()["folders"] if f["name"] == name)


def test_a_folder_is_added_while_its_progress_is_told(
    serve: Callable[..., TestClient], place: Path, shared: Path
) -> None:
    client = serve(place, folders=(shared / "more",))
    before = client.get("/api/v1/status").json()["library"]
    answer = client.post("/api/v1/jobs", json={"folder": _folder(client, "more")})
    assert answer.status_code == 202
    job = answer.json()
    assert (job["kind"], job["folder"]) == ("add", "more")
    stream = client.get(f"/api/v1/jobs/{job['id']}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in stream.text.strip().split("\n\n")]
    assert events[-1]["event"] == "done"
    last = json.loads(events[-1]["data"])
    assert (last["state"], last["added"], last["fraction"], last["files_done"]) == ("done", 1, 1.0, 1)
    after = client.get("/api/v1/status").json()["library"]
    assert (after["videos"], before["videos"]) == (3, 2)
    assert after["generation"] != before["generation"]
    assert [j["id"] for j in client.get("/api/v1/jobs").json()["jobs"]] == [job["id"]]
    names = [v["name"] for v in client.get("/api/v1/videos").json()["videos"]]
    assert "three.mp4" in names
    found = client.get("/api/v1/search", params={"q": "green name:three"}).json()["hits"]
    assert "three.mp4" in {hit["name"] for hit in found}


def test_what_appears_in_a_watched_folder_is_added(
    serve: Callable[..., TestClient], place: Path, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.05)
    folder = tmp_path / "inbox"
    folder.mkdir()
    shutil.copy(shared / "more" / "three.mp4", folder / "first.mp4")
    client = serve(place, folders=(folder,), watch=True)

    def wait_for(name: str) -> None:
        for _ in range(2400):
            if name in [video["name"] for video in client.get("/api/v1/videos").json()["videos"]]:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} is not added")

    wait_for("first.mp4")
    (folder / "second.mp4").write_bytes((shared / "films" / "one.mp4").read_bytes())
    wait_for("second.mp4")
    jobs = client.get("/api/v1/jobs").json()["jobs"]
    assert [(job["kind"], job["folder"], job["state"]) for job in jobs] == [("add", "inbox", "done")] * 2


def test_failures_are_told_and_tried_again(serve: Callable[..., TestClient], place: Path) -> None:
    client = serve(place)
    job = _wait(client, client.post("/api/v1/jobs/retry", json={}).json()["id"])
    assert (job["kind"], job["state"], job["folder"]) == ("retry", "done", None)
    [failed] = job["failed"]
    assert failed["name"] == "broken.mp4"
    assert client.get("/api/v1/failures").json()["failures"][0]["tries"] == 2


def test_the_same_is_not_done_twice_at_once(serve: Callable[..., TestClient], place: Path, shared: Path) -> None:
    client = serve(place, folders=(shared / "more",))
    with hold_lock(place):
        first = client.post("/api/v1/jobs", json={"folder": _folder(client, "more")}).json()
        again = client.post("/api/v1/jobs", json={"folder": _folder(client, "more")})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
        assert client.get("/api/v1/status").json()["busy"]
        assert client.post("/api/v1/jobs/retry", json={}).status_code == 202
    assert _wait(client, first["id"])["state"] == "done"


def test_a_library_that_another_process_changes_fails_the_job(
    serve: Callable[..., TestClient], place: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_WAIT_SECONDS", 0.0)
    client = serve(place, folders=(shared / "more",))
    with hold_lock(place):
        job = _wait(client, client.post("/api/v1/jobs", json={"folder": _folder(client, "more")}).json()["id"])
    assert job["state"] == "failed"
    assert "is changing this library" in job["error"]
    assert str(place.parent) not in job["error"]
    events = client.get(f"/api/v1/jobs/{job['id']}/events").text
    assert events.startswith("event: failed\n")


def test_cancelled_job_keeps_complete_videos(
    place: Path, tmp_path: Path, light: None, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    films = tmp_path / "many"
    films.mkdir()
    for i in range(6):
        make_video(films / f"{i}.mp4", [(3.0, (20 * i, 200, 90))], rate=5, size=(64, 48))
    jobs = Jobs(place)
    some = threading.Event()
    add = Library.add

    def add_and_cancel(
        self: Library, path: Path, *, progress: Callable[[Any], None] = lambda _: None, links: bool = True
    ) -> AddReport:
        def watch(event: IngestStep | IngestNote) -> None:
            if isinstance(event, IngestStep) and event.files >= 2 and not some.is_set():
                some.set()
                jobs.cancel(job.id)
            progress(event)

        return add(self, path, progress=watch, links=links)

    monkeypatch.setattr(Library, "add", add_and_cancel)
    job = jobs.add(films, "many")
    assert some.wait(20)
    jobs.close()
    ended = jobs.get(job.id)
    assert ended is not None
    assert ended.state == "cancelled"
    with Library.open(place) as library:
        kept = len(library.videos()) - 2
        assert 2 <= kept == ended.added
        library.add(films)
        assert len(library.videos()) == 8


def test_waiting_jobs_are_cancelled_at_once(place: Path, tmp_path: Path, light: None) -> None:
    jobs = Jobs(place)
    with hold_lock(place):
        first, second = jobs.add(tmp_path, "a"), jobs.retry()
        cancelled = jobs.cancel(second.id)
        assert cancelled is not None
        assert cancelled.state == "cancelled"
        jobs.stop_soon()
    jobs.close()
    last = jobs.get(first.id)
    assert last is not None
    assert last.over
    assert jobs.cancel(second.id) == cancelled


def test_unknown_jobs(client: TestClient) -> None:
    assert client.get("/api/v1/jobs/none").status_code == 404
    assert client.get("/api/v1/jobs/none/events").status_code == 404
    assert client.post("/api/v1/jobs/none/cancel", json={}).status_code == 404


def test_one_stream_tells_of_all_jobs(tmp_path: Path) -> None:
    class ListedJobs(Jobs):
        """Jobs that do nothing but be listed."""

        listed = (JobOut.new("2", "add", "two", state="running"), JobOut.new("1", "add", "one"))

        def all(self) -> list[JobOut]:
            return list(self.listed)

    jobs = ListedJobs(tmp_path / "none", waiting=5)
    running, waiting = jobs.listed

    async def heard() -> list[tuple[str, str, str]]:
        told = []
        async for event in stream_events(jobs):
            if event.startswith(":"):
                continue
            name, data = (line.partition(": ")[2] for line in event.splitlines()[:2])
            job = json.loads(data)
            told.append((name, job["id"], job["state"]))
            if len(told) == 2:  # a new one, and one that changes
                jobs.listed = (
                    JobOut.new("3", "retry", None, state="failed"),
                    running.model_copy(update={"state": "done"}),
                    waiting,
                )
            if len(told) == 4:
                jobs.stopping.set()
        return told

    assert asyncio.run(asyncio.wait_for(heard(), 20)) == [
        ("progress", "1", "waiting"), ("progress", "2", "running"), ("done", "2", "done"), ("failed", "3", "failed"),
    ]  # fmt: skip


def test_the_stream_of_all_jobs_is_no_job(client: TestClient) -> None:
    service = client.app.state.service  # type: ignore[attr-defined]
    service.jobs.stopping.set()  # so that it ends
    answer = client.get("/api/v1/jobs/events")
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["content-type"].startswith("text/event-stream")
