from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from momentseek.api.library import Library
from momentseek.server.jobs import LOWER_PRIORITY, Jobs, lower_priority, pause_while


def test_pause_ends_without_waiters_after_its_limit_or_when_the_job_stops() -> None:
    wanted = iter([True, True, True, False])
    assert 0 < pause_while(lambda: next(wanted), threading.Event()) < 5
    assert 0.05 <= pause_while(lambda: True, threading.Event(), 0.05) < 5
    stop = threading.Event()
    stop.set()
    begun = time.monotonic()
    pause_while(lambda: True, stop)
    assert time.monotonic() - begun < 5


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux only")
def test_a_thread_is_lowered_and_so_are_those_that_it_starts() -> None:
    found: list[int] = []

    def look() -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def work() -> None:
        lower_priority()
        look()
        below = threading.Thread(target=look)
        below.start()
        below.join()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [max(before, LOWER_PRIORITY)] * 2
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_adding_waits_for_searches(
    place: Path, tmp_path: Path, light: None, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    films = tmp_path / "many"
    films.mkdir()
    for i in range(3):
        make_video(films / f"{i}.mp4", [(3.0, (20 * i, 200, 90))], rate=5, size=(64, 48))
    waiting = threading.Event()
    waiting.set()
    asked = 0

    def is_wanted() -> bool:
        nonlocal asked
        asked += 1
        return waiting.is_set()

    jobs = Jobs(place, is_wanted=is_wanted)
    id = jobs.add(films, "many").id
    until = time.monotonic() + 120
    while asked < 5 and time.monotonic() < until:
        time.sleep(0.01)
    job = jobs.get(id)
    assert job is not None
    assert (job.state, job.files_done < 3) == ("running", True)
    waiting.clear()
    while (job := jobs.get(id)) is not None and not job.over and time.monotonic() < until:
        time.sleep(0.01)
    jobs.close()
    assert job is not None
    assert (job.state, job.added) == ("done", 3)
    with Library.open(place) as library:
        assert len(library.videos()) == 5
