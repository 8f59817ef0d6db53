"""The power fails at any instant: what finished commands reported is there, and nothing is wrong with the library."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.helpers.power_loss import PowerCut, record_power_loss

from momentseek.core import atomic
from momentseek.core.errors import MomentseekError
from momentseek.library.options import WritePace
from momentseek.library.scan.kernels import has_kernels
from momentseek.library.scan.plan import build_plan, open_plan
from momentseek.library.segments import build_segment
from momentseek.library.store import LibraryStore
from momentseek.server.judging.store import JudgementStore

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
Content = Callable[[LibraryStore], dict[str, Any]]
Film = Callable[..., Path]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs inodes that are not given away")


def judge(library: LibraryStore, level: int) -> None:
    with JudgementStore(library.path, create=True) as store, store.changes():
        video = library.videos()[0]
        store.add_video(video.hash, video.name, video.name, video.duration)
        query = store.add_query(f"query {level}", 20)
        store.add_candidate(query, 1, 1, video.hash, 0.0, 1.5)
        store.add_judgement(query, "somebody", level)


def judgements(folder: Path) -> list[int]:
    with JudgementStore(folder) as store:
        return [row.relevance for row in store.judgements()]


@pytest.mark.parametrize("states", [40, pytest.param(1000, marks=pytest.mark.figures)])
def test_the_power_fails_at_any_instant(
    states: int, tmp_path: Path, films: Path, film: Film, light: ModuleType, content: Content,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "more").mkdir()
    more = [film(tmp_path / "more" / f"{i}.mp4", (40 * i, 90, 0), seconds=2) for i in range(3)]
    root = tmp_path / "disk"
    root.mkdir()
    folder = root / "new" / "library"
    promised: list[tuple[dict[str, Any], list[int]]] = [({}, [])]
    with record_power_loss(root, monkeypatch) as recorder:
        library = LibraryStore.open(folder, create=True, encoder="colours")
        with library:
            library.options = replace(library.options, pace=WritePace(rows=2, seconds=60, part_clips=4))
            for command in (
                lambda: library.add(films),
                lambda: judge(library, 3),
                lambda: library.add(more),
                lambda: library.remove("b.mp4"),
                lambda: library.compact(),
                lambda: library.reencode("colours-2"),
                lambda: judge(library, 1),
            ):
                command()
                promised.append((content(library), judgements(folder)))
                recorder.finish_command()
    cuts = recorder.cuts
    ends = [cut for cut in cuts if cut.at == "the end of a command"]
    assert len(cuts) > 60
    chance = random.Random(states)
    for number in range(states):
        cut = ends[number] if number < len(ends) else chance.choice(cuts)
        after = promised[min(cut.command + 1, len(promised) - 1)]
        _judge_restart(cut, tmp_path / "restart", chance, number, promised[cut.command], after, content)


def _judge_restart(
    cut: PowerCut, root: Path, chance: random.Random, number: int,
    before: tuple[dict[str, Any], list[int]], after: tuple[dict[str, Any], list[int]], content: Content,
) -> None:  # fmt: skip
    cut.leave(root, ("least", "names", "any")[number % 3], chance)
    folder = root / "new" / "library"
    try:
        library = LibraryStore.open(folder, create=False)
    except MomentseekError:
        assert cut.command == 0, cut.at  # no command had said anything yet
    else:
        with library:
            assert library.verify().problems == [], (cut.at, cut.command)
            found = content(library)
            for name in {*before[0], *after[0], *found}:
                assert found.get(name) in (before[0].get(name), after[0].get(name)), (cut.at, cut.command, name)
            assert judgements(folder) in (before[1], after[1])
    shutil.rmtree(root)


def test_a_written_file_is_there_after_the_power_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old.txt").write_bytes(b"before")
    with record_power_loss(root, monkeypatch) as recorder:
        atomic.make_folder(root / "a" / "b")
        atomic.write_all({root / "a" / "b" / "new.txt": b"new", root / "old.txt": b"after"})
        recorder.finish_command()
    chance = random.Random(1)
    for number, cut in enumerate(recorder.cuts * 6):
        left = tmp_path / str(number)
        cut.leave(left, ("least", "names", "any")[number % 3], chance)
        assert (left / "old.txt").read_bytes() in ((b"after",) if cut.command else (b"before", b"after"))
        new = left / "a" / "b" / "new.txt"
        assert new.exists() or not cut.command
        assert not new.exists() or new.read_bytes() == b"new"


@pytest.mark.skipif(not has_kernels(), reason="needs the compiled kernels")
def test_a_plan_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).normal(size=(600, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    held = [build_segment("vision", range(1, 41), np.split(rows, 40), "one")]
    root = tmp_path / "disk"
    root.mkdir()
    with record_power_loss(root, monkeypatch) as recorder:
        want = build_plan(held, root / "plan")
        recorder.finish_command()
    chance = random.Random(1)
    for number, cut in enumerate(recorder.cuts * 3):
        left = tmp_path / str(number)
        cut.leave(left, ("least", "names", "any")[number % 3], chance)
        plan = open_plan(left / "plan", held)
        assert plan is not None or not cut.command
        if plan is not None:
            np.testing.assert_array_equal(plan.means.codes, want.means.codes)
            np.testing.assert_array_equal(plan.means.scales, want.means.scales)


def test_the_recorder_loses_what_is_not_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    with record_power_loss(root, monkeypatch) as recorder:
        atomic.write_bytes(root / "lost.txt", b"lost", flush=False)
        recorder.finish_command()
    cut, chance = recorder.cuts[-1], random.Random(1)
    cut.leave(tmp_path / "least", "least", chance)
    assert list((tmp_path / "least").iterdir()) == []
    cut.leave(tmp_path / "names", "names", chance)
    assert (tmp_path / "names" / "lost.txt").read_bytes() == b""
