"""Histories under faults: the checker finds what it should, and a short history has nothing wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parent.parent.parent / "bench"


@pytest.fixture
def checker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    import history

    return history


def changes(checker: Any, *rows: tuple[bool, float, float, str]) -> list[Any]:
    return [checker.Change(("video", "a"), there, begun, ended, outcome) for there, begun, ended, outcome in rows]


def test_what_may_be_true_follows_from_the_answers(checker: Any) -> None:
    made = changes(checker, (True, 1, 2, "ok"), (False, 10, 11, "unknown"), (True, 20, 21, "unknown"))
    found = checker.History(made)
    key = ("video", "a")
    assert found.possible(key, 0.0, 0.5, False) == {False}
    assert found.possible(key, 1.5, 1.6, False) == {False, True}, "while it is added"
    assert found.possible(key, 3.0, 5.0, False) == {True}
    assert found.possible(key, 12.0, 15.0, False) == {True, False}, "nobody knows whether it was removed"
    last = checker.History([*made, *changes(checker, (False, 30, 31, "ok"))])
    assert last.possible(key, 40.0, 41.0, False) == {False}
    late = checker.History([*made, *changes(checker, (False, 30, 31, "ok"))], lingering=True)
    assert late.possible(key, 40.0, 41.0, False) == {False, True}, "a cluster may still be adding it"


@pytest.mark.parametrize(
    ("shown", "begun", "marked", "wrong"),
    [
        ({"a"}, 40.0, False, 0), (set(), 40.0, False, 1), (set(), 40.0, True, 0), ({"a"}, 105.0, False, 0),
        ({"a"}, 140.0, False, 1), ({"a"}, 140.0, True, 0), ({"b", "a"}, 40.0, True, 1),
    ],
    ids=["there", "lost", "lost and said so", "removed just now", "removed long ago", "old and said so", "never there"],
)  # fmt: skip
def test_searches_are_checked(checker: Any, shown: set[str], begun: float, marked: bool, wrong: int) -> None:
    made = checker.History(changes(checker, (True, 1, 2, "ok"), (False, 100, 101, "ok")))
    look = checker.Look(frozenset(shown), begun, begun + 1, marked)
    assert len(checker.check_looks(made, [look], 12.0)) == wrong


def test_the_end_is_checked(checker: Any) -> None:
    judged = checker.Change(("judgement", 1, "ann"), 3, 1.0, 2.0, "ok")
    made = [*changes(checker, (True, 1, 2, "ok")), judged]
    history = checker.History(made)
    assert checker.check_end(history, {"a"}, {judged.key: 3}) == []
    assert len(checker.check_end(history, set(), {judged.key: 4})) == 2
    assert len(checker.check_end(history, {"a", "b"}, {judged.key: 3, ("judgement", 2, "ann"): 1})) == 2
    assert checker.check_log(made, {judged.key: [1, 3]}) == []
    assert len(checker.check_log(made, {judged.key: [1]})) == 1


@pytest.mark.figures
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("more", [[], ["--cluster"]], ids=["machines", "cluster"])
def test_nothing_is_lost_or_invented_while_machines_fail(more: list[str]) -> None:
    for module in ("av", "obstore", "pg8000", *(["ray"] if more else [])):
        pytest.importorskip(module)
    words = [sys.executable, str(BENCH / "histories.py"), "--seeds", "1", "--seconds", "40", *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1500, env=dict(os.environ))
    if "cannot be made here" in done.stderr or "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 histories of 40 s, 0 with something wrong" in done.stdout
    assert "add: acknowledged" in done.stdout
    assert "search: whole" in done.stdout
