"""Run tasks on a cluster; Ray places each, waits for those it depends on, and repeats it if its node dies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.cluster.connection import Cluster
from momentseek.cluster.ray_process import ClusterLostError, work_on
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.registry import encode_texts
from momentseek.recognition.encoders.text_cache import EncodeChunks
from momentseek.recognition.runtime import THREADS_VARIABLE

STOP_SECONDS = 120.0
"""How long tasks may take to save what they have when the work is stopped."""
RETRIES = 3
"""How often a task is restarted if its node or process has died."""
RENEW_SECONDS = 1.0
"""How often progress is shown while no task ends."""
REASONS = 5
"""Largest number of failures that a message names."""


@dataclass(frozen=True)
class ClusterTask:
    """A function call that any node can make.

    Files must have the same paths everywhere, and the call is made in the working folder of this process.
    """

    name: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    after: tuple[int, ...] = ()
    """Positions of earlier tasks that it depends on."""
    processors: int = 1


@dataclass(frozen=True)
class TaskStep:
    """The progress of the tasks."""

    done: int
    total: int
    failed: int
    running: int
    nodes: int
    seconds_left: float | None
    """None until one task is done."""

    def __str__(self) -> str:
        """One line.

        >>> str(TaskStep(3, 12, 1, 2, 2, 90.0))
        '3 of 12 done, 1 failed, 2 at work on 2 nodes, about 90 s left'
        """
        parts = [f"{self.done} of {self.total} done"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.running} at work on {count(self.nodes, 'node')}"] if self.running else []
        parts += [] if self.seconds_left is None else [f"about {self.seconds_left:,.0f} s left"]
        return ", ".join(parts)


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task: its value, or why and where it failed."""

    value: Any = None
    failure: str | None = None
    node: str = ""


def run_tasks(
    cluster: Cluster, tasks: Sequence[ClusterTask], *, progress: Callable[[TaskStep], None] | None = None
) -> Iterator[tuple[int, Any]]:
    """Run tasks on a cluster, and yield the position and value of each when it ends.

    A task that fails stops only those that depend on it; at the end a MomentseekError names the failures and their
    nodes. Ctrl-C asks running tasks to save and stop, drops waiting ones, and is raised again.
    """
    ray = cluster.ray
    running: dict[Any, int] = {}
    sent: list[Any] = []
    failures: list[tuple[int, TaskOutcome]] = []
    begun = time.monotonic()
    try:
        for place, task in enumerate(tasks):
            # an argument that is a task's result makes Ray wait for it
            call = ray.remote(num_cpus=task.processors, max_retries=RETRIES, scheduling_strategy="SPREAD")(carry_out)
            needs = [sent[earlier] for earlier in task.after]
            sent.append(call.remote(str(Path.cwd()), task.processors, task.work, task.arguments, *needs))
            running[sent[-1]] = place
        while running:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=RENEW_SECONDS)
            for one in ready:
                place = running.pop(one)
                outcome = _outcome(ray, one)
                if outcome.failure is None:
                    yield place, outcome.value
                else:
                    failures.append((place, outcome))
            if progress is not None:
                progress(_step(cluster, tasks, running, len(failures), time.monotonic() - begun))
    except BaseException:
        _stop(ray, running)
        raise
    if failures:
        raise MomentseekError(_failure_text(tasks, failures))


def run_tasks_on(
    address: str, tasks: Sequence[ClusterTask], *, progress: Callable[[TaskStep], None] | None = None
) -> Iterator[tuple[int, Any]]:
    """Run tasks on the cluster at an address, like ``run_tasks``.

    This runs in a separate process, because Ray ends its process if the cluster's head is lost. If the cluster is lost,
    a MomentseekError says how many tasks were done.
    """
    done = 0
    try:
        for kind, content in work_on(address, _run_there, tasks) if tasks else ():
            if kind == "report":
                return
            if isinstance(content, TaskStep):
                if progress is not None:
                    progress(content)
            else:
                done += 1
                yield content
    except ClusterLostError as e:
        raise MomentseekError(
            f"{address}: the cluster was lost ({e}); {done:,} of {count(len(tasks), 'task')} were done, and what they "
            "made is kept: run the command again"
        ) from None


def _run_there(cluster: Cluster, tell: Callable[[Any], None], tasks: Sequence[ClusterTask]) -> None:
    for done in run_tasks(cluster, tasks, progress=tell):
        tell(done)


def in_order(values: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """The values of tasks in the order of their positions, each as soon as those before it are known.

    >>> list(in_order([(1, "b"), (0, "a"), (2, "c")]))
    ['a', 'b', 'c']
    """
    waiting: dict[int, Any] = {}
    given = 0
    for place, value in values:
        waiting[place] = value
        while given in waiting:
            yield waiting.pop(given)
            given += 1


def texts_on(address: str, encoder: str) -> EncodeChunks:
    """A function that encodes lists of texts on the cluster at an address, which is joined on first use."""

    def encode(texts: Sequence[list[str]]) -> Iterator[Vectors]:
        tasks = [
            ClusterTask(f"sentences {at + 1} of {len(texts)}", encode_texts, (encoder, some))
            for at, some in enumerate(texts)
        ]
        return in_order(run_tasks_on(address, tasks))

    return encode


def carry_out(
    folder: str, processors: int, work: Callable[..., Any], arguments: Sequence[Any], *needs: TaskOutcome
) -> TaskOutcome:
    """Run a task on this node in a folder, unless a task that it depends on has failed."""
    from ray.util import get_node_ip_address

    node = str(get_node_ip_address())
    if any(need.failure is not None for need in needs):
        return TaskOutcome(failure="a task that it depends on has failed", node=node)
    os.environ.setdefault(THREADS_VARIABLE, str(processors))  # a task must not use all cores of the node
    try:
        os.chdir(folder)
    except OSError:
        return TaskOutcome(failure=f"{folder}: is no folder there; all nodes must see the same ones", node=node)
    try:
        return TaskOutcome(work(*arguments), node=node)
    except MomentseekError as e:
        return TaskOutcome(failure=str(e), node=node)
    except Exception as e:  # a fault in one task must not lose what the others do
        return TaskOutcome(failure=f"{type(e).__name__}: {e}", node=f"{node}, process {os.getpid()}")


def _outcome(ray: Any, one: Any) -> TaskOutcome:
    try:
        outcome: TaskOutcome = ray.get(one)
    except ray.exceptions.RayError as e:
        said = [line.strip() for line in str(e).splitlines() if line.strip()]
        return TaskOutcome(failure=f"{type(e).__name__}: {said[0][:200] if said else 'no reason is known'}")
    return outcome


def _step(
    cluster: Cluster, tasks: Sequence[ClusterTask], running: dict[Any, int], failed: int, elapsed: float
) -> TaskStep:
    done = len(tasks) - len(running)
    left = elapsed / done * len(running) if done else None
    free = cluster.processors()
    at_work = 0
    for place in running.values():  # in the order in which Ray takes them up
        free -= tasks[place].processors
        if free < 0:
            break
        at_work += 1
    return TaskStep(done - failed, len(tasks), failed, at_work, len(cluster.alive_nodes()), left)


def _stop(ray: Any, running: dict[Any, int]) -> None:
    """Ask tasks to stop and wait until they have saved; a second Ctrl-C leaves at once."""
    for one in running:
        with suppress(Exception):  # one that has just ended
            ray.cancel(one, force=False)
    with suppress(KeyboardInterrupt):
        ray.wait(list(running), num_returns=len(running), timeout=STOP_SECONDS) if running else None


def _failure_text(tasks: Sequence[ClusterTask], failures: Sequence[tuple[int, TaskOutcome]]) -> str:
    reasons = [
        f"{tasks[place].name}{f' on {outcome.node}' if outcome.node else ''}: {outcome.failure}"
        for place, outcome in sorted(failures, key=lambda one: one[0])[:REASONS]
    ]
    more = f"; and {len(failures) - REASONS} more" if len(failures) > REASONS else ""
    return f"{len(failures)} of {count(len(tasks), 'task')} failed on the cluster: {'; '.join(reasons)}{more}"
