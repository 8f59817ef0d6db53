"""Runs tests in several processes that are forked when everything has been collected: ``pytest --forks 3``.

The workers of pytest-xdist each import the package and collect every test, of which they run a part. Here that is done
once. A worker keeps to a folder as long as there are tests in it, since those share servers, browsers and libraries.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import pytest
from warm_processes import share_forks

LONG = 30
"""A browser's or a slow test is worth so many others where folders are compared."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run tests in so many processes that share what is collected")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Hand the tests out to workers and tell pytest what they report."""
    count = min(session.config.getoption("forks"), len(session.items))
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    config: Any = session.config
    config._tmp_path_factory.getbasetemp()  # theirs is this one
    config.pluginmanager.getplugin("terminalreporter").showfspath = False  # tests of several files end in turns
    if any("warm_forks" in getattr(item, "fixturenames", ()) for item in session.items):
        share_forks()
    queue = _Queue(session.items)
    workers: list[_Worker] = []
    try:
        for _ in range(count):
            workers.append(_Worker(session, queue, workers))
        while busy := [worker for worker in workers if worker.tests]:
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection in ready and not worker.listen():
                    worker.bury()
                    workers.remove(worker)
                    workers.append(_Worker(session, queue, workers))
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            os.waitpid(worker.process, 0)
    return True


class _Queue:
    """The numbers of the tests that no worker has yet, by folder."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self.folders: dict[str, deque[int]] = {}
        self.weights: dict[str, int] = {}
        self.begun: set[str] = set()
        for number, item in enumerate(items):
            folder = "/".join(item.nodeid.split("::")[0].split("/")[:-1][:2])
            self.folders.setdefault(folder, deque()).append(number)
            long = any(item.get_closest_marker(name) for name in ("browser", "slow"))
            self.weights[folder] = self.weights.get(folder, 0) + (LONG if long else 1)

    def folder(self) -> str | None:
        """The longest folder that nobody has begun, or else that with most tests left."""
        left = [folder for folder, numbers in self.folders.items() if numbers]
        fresh = [folder for folder in left if folder not in self.begun]
        if fresh:
            return max(fresh, key=self.weights.__getitem__)
        return max(left, key=lambda folder: len(self.folders[folder]), default=None)

    def give(self, folder: str | None, first: bool) -> int | None:
        """The next test of a folder, or its last for those who came to help."""
        numbers = self.folders.get(folder or "")
        if not numbers:
            return None
        return numbers.popleft() if first else numbers.pop()


class _Worker:
    """A process and its tests: the first runs, the second is known for what may be torn down between them."""

    def __init__(self, session: pytest.Session, queue: _Queue, others: Sequence[_Worker]) -> None:
        self.session, self.queue = session, queue
        self.folder: str | None = None
        self.owner = False
        self.tests: deque[int | None] = deque()
        self.connection, there = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads of libraries, which know of forks
            self.process = os.fork()
        if self.process == 0:
            for connection in (self.connection, *(worker.connection for worker in others)):
                connection.close()
            _work(session, there)
        there.close()
        self.hand()
        self.hand()

    def hand(self) -> None:
        """Give it a test; nothing means that it may end."""
        if self.tests and self.tests[-1] is None:
            return
        number = self.queue.give(self.folder, self.owner)
        if number is None:
            self.folder = self.queue.folder()
            self.owner = self.folder is not None and self.folder not in self.queue.begun
            self.queue.begun.add(self.folder or "")
            number = self.queue.give(self.folder, self.owner)
        if number is not None or self.tests:
            self.tests.append(number)
        with suppress(ConnectionError):  # listening finds that it has ended
            self.connection.send(number)

    def listen(self) -> bool:
        """Take one of its messages; False when it has ended before its time."""
        config = self.session.config
        try:
            kind, told = self.connection.recv()
        except (EOFError, ConnectionError):
            return False
        if kind == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=told)
            config.hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            config.hook.pytest_warning_recorded.call_historic(kwargs=told)
        else:
            done = self.tests.popleft()
            assert done is not None
            item = self.session.items[done]
            config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            if self.tests == deque([None]):
                self.tests.clear()
            else:
                self.hand()
        return True

    def bury(self) -> None:
        """Say which test was its last, and give back those it had not begun."""
        _, status = os.waitpid(self.process, 0)
        last, *rest = (number for number in self.tests if number is not None)
        item = self.session.items[last]
        said = f"the process of this test ended with {os.waitstatus_to_exitcode(status)}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        self.session.config.hook.pytest_runtest_logreport(report=report)
        for number in rest:
            self.queue.folders[self.folder or ""].appendleft(number)


class _Messenger:
    """What a worker's pytest tells to the process that reports."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self.config, self.connection = config, connection
        self.begun = False
        config.pluginmanager.register(self)  # which repeats all warnings that were told before
        self.begun = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        if not self.begun:
            return
        warning_message.source = None  # which may be anything
        told = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self.connection.send(("warning", told))


def _work(session: pytest.Session, connection: Connection) -> NoReturn:
    """Run what is asked for until there is no more, and end the process."""
    session_state: Any = session
    status = 1
    try:
        plugins: Any = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are those of all workers
        capture.start_global_capturing()
        capture.suspend_global_capture()
        _Messenger(session.config, connection)
        number = connection.recv()
        while number is not None:
            following = connection.recv()
            item, after = session.items[number], None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            connection.send(("done", number))
            number = following
        status = 0
    except (EOFError, ConnectionError, KeyboardInterrupt):
        with suppress(Exception):
            session_state._setupstate.teardown_exact(None)
    except BaseException:  # whose process would go on with what the tests' own does at its end
        traceback.print_exc()
    finally:
        os._exit(status)
