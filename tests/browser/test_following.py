"""Many jobs at once. The server's answers are played, so that the jobs stand still."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

COUNT = 9
EVENTS = """
window.sources = [];
window.EventSource = class extends EventTarget {
  static CLOSED = 2;
  constructor(address) { super(); this.address = address; this.readyState = 1; window.sources.push(this); }
  close() { this.readyState = 2; }
};
window.following = () =>
  window.sources.filter((one) => one.readyState !== 2).map((one) => one.address.split("/").at(-2));
"""


def job(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"job{number}", "state": state, "kind": "add", "folder": f"Folder {number}", "files_done": 0,
        "files_total": 3, "file": "", "fraction": 0.0, "rate": None, "seconds_left": None, "added": 1, "unchanged": 0,
        "failed": [], "error": None, "started": None, "ended": None, **more,
    }  # fmt: skip


@pytest.fixture
def crowded(served: Any, open_page: Callable[..., Any]) -> tuple[Any, list[dict[str, Any]]]:
    """A page of a server with one job running and many waiting, and these jobs, the newest first."""
    page = open_page(served.address)
    jobs = [job(n, "running" if n == 0 else "waiting") for n in reversed(range(COUNT))]
    page.context.add_init_script(EVENTS)
    page.route("**/api/v1/jobs", lambda route: route.fulfill(json={"jobs": jobs}))
    page.clock.install()
    page.goto(served.address + "#library")
    page.reload()
    page.get_by_text("Folder 0").wait_for()
    return page, jobs


def test_only_the_running_job_is_listened_to_and_the_others_are_asked_for(crowded: Any) -> None:
    page, jobs = crowded
    assert page.evaluate("following()") == ["job0"]
    page.get_by_role("button", name="Stop Folder 3").focus()
    further = json.dumps(job(0, "running", files_done=2))
    page.evaluate("(data) => sources.at(-1).dispatchEvent(new MessageEvent('progress', {data}))", further)
    page.locator(".job", has_text="Folder 0").get_by_text("2 of 3").wait_for()
    assert page.evaluate("document.activeElement.ariaLabel") == "Stop Folder 3"
    jobs[-1] = job(0, "done")
    jobs[-2] = job(1, "running", files_done=1)
    jobs[-3] = job(2, "cancelled")
    page.clock.run_for(3500)
    page.wait_for_function("() => following().join() === 'job1'")
    page.locator(".job", has_text="Folder 1").get_by_text("1 of 3").wait_for()
    page.locator(".job", has_text="Folder 2").get_by_text("stopped").wait_for()
    done = json.dumps(job(1, "done"))
    page.evaluate("(data) => sources.at(-1).dispatchEvent(new MessageEvent('done', {data}))", done)
    page.wait_for_function("() => following().join() === 'job3'")


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
    jobs[:] = [job(n, "done") for n in reversed(range(COUNT))]
    page.clock.run_for(3500)
    page.wait_for_function("() => document.querySelectorAll('.job').length === 5")
    assert page.evaluate("following()") == []
