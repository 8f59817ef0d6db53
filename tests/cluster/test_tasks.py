"""Tasks on a cluster that does each when it is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from momentseek.cluster import tasks as under_test
from momentseek.cluster.connection import Cluster
from momentseek.cluster.tasks import ClusterTask, TaskOutcome, TaskStep, in_order, run_tasks
from momentseek.core.errors import MomentseekError

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs ray")


class LazyRay:
    """Does what Ray does, in this process: the last task first, and what a task needs before it."""

    class exceptions:
        """As in Ray."""

        class RayError(Exception):
            """As in Ray."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.values: dict[int, Any] = {}
        self.cancelled: list[int] = []

    def remote(self, **_: Any) -> Callable[..., Any]:
        def declare(work: Callable[..., Any]) -> Any:
            def call(*arguments: Any) -> int:
                self.calls.append((work, arguments))
                return 1000 + len(self.calls) - 1

            return SimpleNamespace(remote=call)

        return declare

    def wait(self, refs: Sequence[int], num_returns: int = 1, timeout: float = 0.0) -> tuple[list[int], list[int]]:
        chosen = [ref for ref in refs if ref in self.values][-1:] or [refs[-1]]
        self.get(chosen[0])
        return chosen, [ref for ref in refs if ref not in chosen]

    def get(self, ref: int) -> Any:
        if ref not in self.values:
            work, arguments = self.calls[ref - 1000]
            needs = [self.get(one) for one in arguments[4:]]
            self.values[ref] = work(*arguments[:4], *needs)
        return self.values[ref]

    def cancel(self, ref: int, force: bool) -> None:
        self.cancelled.append(ref)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}]


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[LazyRay]:
    pytest.importorskip("ray")
    here = Path.cwd()
    monkeypatch.setenv(under_test.THREADS_VARIABLE, "1")
    yield LazyRay()
    os.chdir(here)


def double(value: int) -> int:
    if value == 3:
        raise MomentseekError("three is too many")
    if value == 5:
        raise ZeroDivisionError("five")
    return 2 * value


def numbered(*values: int, after: tuple[int, ...] = ()) -> list[ClusterTask]:
    return [
        ClusterTask(f"task {value}", double, (value,), after if place else ()) for place, value in enumerate(values)
    ]


def test_values_come_as_tasks_end_and_in_order_where_that_is_wanted(ray: LazyRay) -> None:
    steps: list[TaskStep] = []
    assert list(run_tasks(Cluster(ray), numbered(1, 2, 4), progress=steps.append)) == [(2, 8), (1, 4), (0, 2)]
    assert str(steps[0]).startswith("1 of 3 done, 2 at work on 1 node, about")
    assert steps[-1].done == 3
    assert list(in_order(run_tasks(Cluster(LazyRay()), numbered(1, 2, 4)))) == [2, 4, 8]


def test_failures_are_named_with_their_node_after_all_others_are_done(ray: LazyRay) -> None:
    done: list[tuple[int, Any]] = []
    with pytest.raises(MomentseekError) as refused:
        done.extend(run_tasks(Cluster(ray), numbered(1, 3, 5, 2)))
    assert sorted(done) == [(0, 2), (3, 4)]
    assert str(refused.value).startswith("2 of 4 tasks failed on the cluster: task 3 on ")
    assert "three is too many" in str(refused.value)
    assert "ZeroDivisionError: five" in str(refused.value)


def test_what_goes_on_from_a_failure_is_not_begun(ray: LazyRay) -> None:
    with pytest.raises(MomentseekError, match=r"task 1 on .*a task that it depends on has failed"):
        list(run_tasks(Cluster(ray), numbered(3, 1, after=(0,))))


def test_stopping_cancels_what_is_left(ray: LazyRay) -> None:
    running = run_tasks(Cluster(ray), numbered(1, 2, 4))
    assert next(running) == (2, 8)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt)
    assert ray.cancelled == [1000, 1001]


def test_a_node_without_the_folder_says_so(ray: LazyRay, tmp_path: Path) -> None:
    told = under_test.carry_out(str(tmp_path / "none"), 1, double, (1,))
    assert isinstance(told, TaskOutcome)
    assert told.failure == f"{tmp_path / 'none'}: is no folder there; all nodes must see the same ones"
