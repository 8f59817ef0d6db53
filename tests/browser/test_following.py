"""Many jobs at once, in a tab without a shared worker. The server's answers are played, so the jobs stand still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

COUNT = 9
EVENTS = """
delete window.SharedWorker;
window.sources = [];
window.EventSource = class extends EventTarget {
  static CLOSED = 2;
  constructor(address) { super(); this.address = address; this.readyState = 1; window.sources.push(this); }
  close() { this.readyState = 2; }
};
window.following = () => window.sources.filter((one) => one.readyState !== 2).map((one) => one.address);
window.send = (job) => {
  const name = {done: "done", cancelled: "done", failed: "failed"}[job.state] ?? "progress";
  sources.at(-1).dispatchEvent(new MessageEvent(name, {data: JSON.stringify(job)}));
};
window.hide = (hidden) => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
};
"""
STREAM = "() => following().join() === '/api/v1/jobs/events'"
SILENCE = "() => following().length === 0"


def job(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"job{number}", "state": state, "kind": "add", "folder": f"Folder {number}", "files_done": 0,
        "files_total": 3, "file": "", "fraction": 0.0, "rate": None, "seconds_left": None, "added": 1, "unchanged": 0,
        "failed": [], "error": None, "started": None, "ended": None, **more,
    }  # fmt: skip


@pytest.fixture
def crowded(served: Any, open_page: Callable[..., Any]) -> tuple[Any, list[dict[str, Any]]]:
    """A page of a server with one job running and many waiting, and these jobs, the newest first."""
    jobs = [job(n, "running" if n == 0 else "waiting") for n in reversed(range(COUNT))]

    def prepare(page: Any) -> None:
        page.add_init_script(EVENTS)
        page.route("**/api/v1/jobs", lambda route: route.fulfill(json={"jobs": jobs}))
        page.clock.install()

    page = open_page(served.address + "#library", prepare=prepare)
    page.get_by_text("Folder 0").wait_for()
    return page, jobs


def test_one_stream_tells_of_all_jobs(crowded: Any) -> None:
    page, jobs = crowded
    page.wait_for_function(STREAM)
    page.get_by_role("button", name="Stop Folder 3").focus()
    page.evaluate("(job) => send(job)", job(0, "running", files_done=2))
    page.locator(".job", has_text="Folder 0").get_by_text("3 of 3").wait_for()
    assert page.evaluate("document.activeElement.ariaLabel") == "Stop Folder 3"
    for one in (job(0, "done"), job(1, "running", files_done=1), job(2, "cancelled")):
        page.evaluate("(job) => send(job)", one)
    page.locator(".job", has_text="Folder 1").get_by_text("2 of 3").wait_for()
    page.locator(".job", has_text="Folder 2").get_by_text("stopped").wait_for()
    assert page.evaluate("sources.length") == 1
    jobs.insert(0, job(COUNT, "waiting"))  # of another tab
    page.evaluate("(job) => send(job)", jobs[0])
    page.get_by_text(f"Folder {COUNT}").wait_for()
    for number in range(COUNT + 1):
        page.evaluate("(job) => send(job)", job(number, "done"))
    page.wait_for_function(SILENCE)


def test_one_count_everywhere_and_a_stop_that_says_it_is_stopping(crowded: Any) -> None:
    page, _ = crowded
    page.wait_for_function(STREAM)
    page.route("**/cancel", lambda route: route.fulfill(json=job(0, "running", files_done=1)))
    page.evaluate("(job) => send(job)", job(0, "running", files_done=1))
    row = page.locator(".job", has_text="Folder 0")
    row.get_by_text("2 of 3").wait_for()
    assert page.locator("#working").inner_text() == "Adding 2 of 3"
    stop = page.get_by_role("button", name="Stop Folder 0")
    stop.click()
    row.get_by_text("stopping…").wait_for()
    assert stop.is_disabled()
    page.evaluate("(job) => send(job)", job(0, "running", files_done=2))
    row.get_by_text("3 of 3").wait_for()
    assert "stopping…" in row.inner_text()
    page.evaluate("(job) => send(job)", job(0, "cancelled", files_done=2))
    row.get_by_text("stopped").wait_for()


def test_a_hidden_tab_listens_to_nothing_and_catches_up_when_seen(crowded: Any) -> None:
    page, jobs = crowded
    page.wait_for_function(STREAM)
    page.evaluate("hide(true)")
    page.wait_for_function(SILENCE)
    jobs[-1] = job(0, "running", files_done=2)
    page.clock.run_for(10_000)
    assert page.evaluate("following()") == []
    assert page.locator(".job").get_by_text("3 of 3").count() == 0
    page.evaluate("hide(false)")
    page.wait_for_function(STREAM)
    page.locator(".job").get_by_text("3 of 3").wait_for()


def test_a_refused_stream_is_asked_for_again(crowded: Any) -> None:
    page, jobs = crowded
    page.wait_for_function(STREAM)
    jobs[-1] = job(0, "running", files_done=2)
    page.evaluate("(sources.at(-1).close(), sources.at(-1).dispatchEvent(new Event('error')))")
    page.wait_for_timeout(300)
    assert page.evaluate("sources.length") == 1
    page.clock.run_for(3500)
    page.locator(".job").get_by_text("3 of 3").wait_for()
    page.wait_for_function(STREAM)
    assert page.evaluate("sources.length") == 2


def test_jobs_are_forgotten_after_a_restart_of_the_server(crowded: Any) -> None:
    page, jobs = crowded
    page.wait_for_function(STREAM)
    page.evaluate("sources.at(-1).dispatchEvent(new Event('open'))")
    jobs.clear()
    page.clock.run_for(3500)
    assert page.locator(".job").count() == COUNT  # nothing was interrupted
    page.evaluate("sources.at(-1).dispatchEvent(new Event('open'))")
    page.wait_for_timeout(200)
    page.clock.run_for(3500)
    page.get_by_text("Nothing is being added.").wait_for()
    page.wait_for_function(SILENCE)


def test_every_job_that_is_not_over_is_shown_and_can_be_stopped(crowded: Any) -> None:
    page, jobs = crowded
    names = page.locator(".job strong").all_inner_texts()
    assert names == [f"Folder {n}" for n in range(COUNT)]
    assert page.get_by_role("button", name="Stop Folder").count() == COUNT
    stopped = job(0, "cancelled")
    page.route("**/api/v1/jobs/job0/cancel", lambda route: route.fulfill(json=stopped))
    jobs[-1] = stopped
    page.get_by_role("button", name="Stop Folder 0").click()
    page.get_by_text("Stopped; 1 video added").wait_for()
    assert page.locator(".job strong").all_inner_texts()[-1] == "Folder 0"
    for number in range(1, COUNT):
        page.evaluate("(job) => send(job)", job(number, "done"))
    page.wait_for_function("() => document.querySelectorAll('.job').length === 5")
    page.wait_for_function(SILENCE)
