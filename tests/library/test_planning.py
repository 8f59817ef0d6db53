"""When a plan is built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from momentseek.core.native.kernels import kernels
from momentseek.library.scan.plan import build_plan, open_plan
from momentseek.library.scan.recall import refresh_plan, tune, worth_planning
from momentseek.library.scan.scan import Scan
from momentseek.library.segments import Segment, build_segment
from momentseek.library.store import LibraryStore


def made(first: int, videos: int, rows: int, name: str) -> Segment:
    rng = np.random.default_rng(first)
    vectors = rng.normal(size=(videos, rows, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return build_segment("vision", range(first, first + videos), list(vectors), name)


def test_only_segments_that_will_stay_are_planned_for() -> None:
    large, small = made(1, 100, 10, "large"), made(101, 2, 10, "small")
    assert [s.name for s in worth_planning([large, small])] == ["large"]
    many = [made(1 + 10 * i, 10, 2, str(i)) for i in range(40)]
    assert worth_planning(many) == many  # without any of which there would be no plan


def test_a_large_library_gets_a_plan_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels() is None:
        pytest.skip("needs the compiled kernels")
    folder = tmp_path / "plan"
    first = made(1, 400, 10, "a" * 32)
    assert not refresh_plan([first], folder)
    monkeypatch.setattr("momentseek.library.scan.recall.MIN_PLANNED_ROWS", 1000)
    assert refresh_plan([first], folder)
    assert not refresh_plan([first, made(401, 20, 10, "b" * 32)], folder)
    assert open_plan(folder, [first]) is not None
    more = made(401, 300, 10, "c" * 32)
    assert refresh_plan([first, more], folder)


def test_copies_say_nothing_about_how_far_to_look(tmp_path: Path) -> None:
    """Where each sentence is said by more videos than a query asks for, a query finds copies of one alone."""
    if kernels() is None:
        pytest.skip("needs the compiled kernels")
    sentences = made(1, 40, 1, "").half.astype(np.float32)
    rows = np.repeat(sentences, 150, axis=0)[:, None]
    copies = build_segment("speech", range(1, len(rows) + 1), list(rows), "d" * 32)
    depths = tune(Scan([copies], build_plan([copies], tmp_path / "plan")))
    assert depths.coarse_margin is None
    assert depths.fine_margin is None


def test_adding_builds_the_plan(library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "momentseek.library.reader.refresh_plan",
        lambda segments, folder, spans=False: asked.append(sum(s.rows for s in segments)),
    )
    library.add(films)
    said = sum(s.rows for s in library.snapshot().speech)
    assert asked == [12, said]
    assert said


def test_a_damaged_plan_is_found_and_built_again(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels() is None:
        pytest.skip("needs the compiled kernels")
    for module in ("scan", "recall"):
        monkeypatch.setattr(f"momentseek.library.scan.{module}.MIN_PLANNED_ROWS", 1)
    library.add(films)
    assert library.verify().clean
    for stream, folder in (("vision", library.paths.plan), ("speech", library.paths.speech_plan)):
        path = next(folder.glob("*.npz"))
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        assert Scan.open(getattr(library.snapshot(), stream), folder).plan is None
        report = library.verify()
        assert [path.name in text for text in report.problems] == [True]
        report = library.verify(repair=True)
        assert report.clean
        assert any("plan" in text for text in report.repaired)
        assert Scan.open(getattr(library.snapshot(), stream), folder).plan is not None
