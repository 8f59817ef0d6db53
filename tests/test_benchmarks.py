"""The record of speed: what benchmarks write, how two records compare, and that the page shows what the record says."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of bench/, by its name."""
    monkeypatch.syspath_prepend(str(root / "bench"))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, root / "bench" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    load("record")
    return load


def kept(record: ModuleType, path: Path, ours: list[float], theirs: list[float], monkeypatch: Any) -> dict[str, Any]:
    monkeypatch.setenv("BENCH_RECORD", str(path))
    one = record.Record("scan")
    one.ratio("exact", ours, "FAISS Flat", theirs)
    one.figure("building", [2.0], "s")
    one.skip("LanceDB", "is not installed")
    one.save()
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_a_ratio_is_of_rounds_that_belong_together(bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    content = kept(bench("record"), tmp_path / "deep" / "r.json", [1.0, 2.0, 4.0], [6.0, 10.0, 16.0], monkeypatch)
    ratio, building = content["benches"]["scan"]["figures"]
    assert (ratio["value"], ratio["low"], ratio["high"], ratio["rounds"]) == (5.0, 4.0, 6.0, 3)
    assert (ratio["ours_seconds"], ratio["peer_seconds"]) == (2.0, 10.0)
    assert building["value"] == 2.0
    assert content["benches"]["scan"]["skipped"] == {"LanceDB": "is not installed"}
    assert content["machine"]["cores"] >= 1


def test_a_benchmark_replaces_only_its_own_part(bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    record, path = bench("record"), tmp_path / "r.json"
    kept(record, path, [1.0], [2.0], monkeypatch)
    other = record.Record("ingest")
    other.figure("1080p", [3.0], "s")
    other.save()
    content = kept(record, path, [1.0], [7.0], monkeypatch)
    assert content["benches"]["scan"]["figures"][0]["value"] == 7.0
    assert content["benches"]["ingest"]["figures"][0]["value"] == 3.0


def test_works_take_turns(bench: Any) -> None:
    done: list[str] = []
    seconds = bench("record").rounds({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 2)
    assert done == ["a", "b", "b", "a"]
    assert [len(times) for times in seconds.values()] == [2, 2]


def test_two_figures_of_one_name_are_a_mistake(bench: Any) -> None:
    one = bench("record").Record("scan")
    one.figure("building", [2.0], "s")
    with pytest.raises(ValueError, match="two figures are called 'building'"):
        one.figure("building", [3.0], "s")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ((6.0, 5.5, 6.5, 5), (4.0, 3.8, 4.2, 5), "worse"),
        ((6.0, 5.5, 6.5, 5), (9.0, 8.0, 9.5, 5), "better"),
        ((6.0, 5.5, 6.5, 5), (5.0, 4.0, 5.6, 5), "as before"),  # the quartiles touch
        ((6.0, 5.95, 6.05, 5), (5.6, 5.55, 5.65, 5), "as before"),  # apart, but by less than a tenth
        ((6.0, 6.0, 6.0, 1), (4.6, 4.6, 4.6, 1), "as before"),  # nobody knows how noisy one round is
        ((6.0, 6.0, 6.0, 1), (4.4, 4.4, 4.4, 1), "worse"),
    ],
)
def test_a_change_counts_beyond_noise(bench: Any, old: tuple[float, ...], new: tuple[float, ...], verdict: str) -> None:
    record, compare = bench("record"), bench("compare")
    figures = [record.Figure("exact", *given, "×") for given in (old, new)]
    assert compare.change("scan", *figures).verdict == verdict
    seconds = [record.Figure("exact", *given, "s", "less") for given in (new, old)]
    assert compare.change("scan", *seconds).verdict == verdict


def test_compare_ends_with_one_if_anything_is_worse(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record, compare = bench("record"), bench("compare")
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    kept(record, old, [1.0] * 5, [6.0] * 5, monkeypatch)
    kept(record, new, [1.0] * 5, [3.0] * 5, monkeypatch)
    for first, second, code, said in (
        (old, new, 1, "2 figures compared: 1 worse, 0 better"),
        (new, old, 0, "2 figures compared: 0 worse, 1 better"),
        (old, old, 0, "2 figures compared: 0 worse, 0 better"),
    ):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["compare.py", str(first), str(second)])
        with pytest.raises(SystemExit) as ended:
            compare.main()
        assert ended.value.code == code
        assert said in capsys.readouterr().out


def test_seconds_of_two_machines_are_not_compared(bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    record, compare = bench("record"), bench("compare")
    content = kept(record, tmp_path / "r.json", [1.0], [6.0], monkeypatch)
    found, notes = compare.changes(content, {**content, "machine": {}})
    assert [c.old.name for c in found] == ["exact / FAISS Flat"]
    assert notes == ["the machines differ, so only ratios are compared"]


def test_what_is_no_record_is_refused(bench: Any, tmp_path: Path) -> None:
    record, path = bench("record"), tmp_path / "r.json"
    for text in ("", "[]", "{}", '{"benches": {"scan": {"figures": [{"name": 1}]}}}'):
        path.write_text(text)
        with pytest.raises(SystemExit, match="is no record of benchmarks; make one with: make bench"):
            record.load_record(path)


def test_the_page_shows_the_record(bench: Any, tmp_path: Path, monkeypatch: Any) -> None:
    content = kept(bench("record"), tmp_path / "r.json", [1.0, 1.0], [6.0, 8.0], monkeypatch)
    text = (
        "By hand.\n\n<!-- record: scan -->\nold\n<!-- end -->\n\n<!-- record: other -->\n<!-- end -->\nAlso by hand.\n"
    )
    page = bench("page").page(text, content)
    assert "| exact / FAISS Flat | 1 | 7 | 7 [6, 8] | 2 |" in page
    assert "LanceDB is not installed." in page
    assert "old" not in page
    assert "Not in the record yet" in page
    assert page.startswith("By hand.")
    assert page.endswith("Also by hand.\n")
    assert bench("page").page(page, content) == page


def test_the_page_is_what_the_record_says(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "bench" / "page.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["flat", "numpy", "ivf", "hnsw", "usearch", "hnswlib", "lancedb", "qdrant", "milvus"])
def test_peers_of_scanning_find_the_best_videos(bench: Any, tmp_path: Path, name: str) -> None:
    peers = bench("scan_peers")
    rng = np.random.default_rng(0)
    clips = rng.standard_normal((150 * peers.CLIPS, peers.DIM)).astype(np.float32)
    clips /= np.linalg.norm(clips, axis=1, keepdims=True)
    asked = clips[[40, 2001]] + 0.01
    record = sys.modules["record"].Record("scan")
    made = peers.make_peers([name], clips, tmp_path, record)
    if not made:
        assert record.skipped == {name: "is not installed"}
        pytest.skip(f"{name} is not installed")
    truth = np.argsort(-(asked @ clips.T).reshape(2, -1, peers.CLIPS).max(2), axis=1)
    for peer in made.values():
        found = peer.search(asked)
        assert [row[0] for row in found] == [2, 100]
        if name in ("flat", "numpy", "lancedb", "qdrant", "milvus"):
            assert [row.tolist() for row in found] == truth[:, : peers.K].tolist()


def test_bins_by_score_hold_every_hit_once_in_order(bench: Any) -> None:
    bins_by_score = bench("real_videos").bins_by_score
    rng = np.random.default_rng(0)
    for size in range(60):
        hits = list(zip(rng.uniform(-1, 1, size).tolist(), (rng.random(size) < 0.5).tolist(), strict=True))
        bins = bins_by_score(hits, 1 + size % 8)
        assert sum(each.count for each in bins) == len(hits)
        assert sum(each.right for each in bins) == sum(right for _, right in hits)
        assert max((each.count for each in bins), default=0) - min((each.count for each in bins), default=0) <= 1
        means = [float(each.name) for each in bins]
        assert means == sorted(means)


def test_a_diagram_is_the_same_file_for_the_same_figures(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    videos = bench("real_videos")
    hits = [("fair", True), ("fair", False), ("strong", True)]
    panels = {"level": {"first hits": videos.bins_by_level(hits, ["weak", "fair", "strong"]), "none": []}}
    files = [videos.save_reliability(panels, tmp_path / name) for name in ("a", "b")]
    assert [path.name for path in files[0]] == ["reliability.png", "reliability.svg"]
    assert files[0][1].read_bytes() == files[1][1].read_bytes()


def test_the_courts_interval_is_students(bench: Any) -> None:
    pytest.importorskip("torch")
    court = bench("court")
    first, second = np.array([[0.5, 0.4, 0.9, 0.3, 0.6]]), np.array([[0.1, 0.3, 0.5, 0.2, 0.1]])
    difference, half = court.interval([first], [second], np.arange(5))
    apart = (first - second)[0]
    assert difference == pytest.approx(apart.mean())
    assert half == pytest.approx(2.7764451 * apart.std(ddof=1) / 5**0.5)  # t for 4 degrees of freedom


def test_the_court_trains_once_and_reports_what_is_finished(
    bench: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    pytest.importorskip("torch")
    court = bench("court")
    table = tmp_path / "court.toml"
    small = {
        "videos = 100": "videos = 8",
        "queries = 500": "queries = 20",
        "_dim = 64": "_dim = 8",
        "steps = 500": "steps = 4",
    }
    text = court.TABLE.read_text()
    for old, new in {**small, "_dim = 48": "_dim = 8", "hidden = 64": "hidden = 8"}.items():
        assert old in text
        text = text.replace(old, new)
    table.write_text(text)
    monkeypatch.setattr(court, "TABLE", table)
    asked = ["court.py", "--out", str(tmp_path / "out"), "--variants", "new-library", "--corpora", "1", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", [*asked, "--size", "2", "--rows", "slate-permuted,reloclnet"])
    court.main()
    assert len(json.loads((tmp_path / "out/data/new-library-1-x2/video_corpus.json").read_text())) == 16
    first = capsys.readouterr().out.splitlines()
    assert sum(line.endswith("of the processor") for line in first) == 4
    assert len(first) == 4 + 2 + 2 * 7  # how two rows were searched, and seven measures of each
    assert all("[" in line for line in first if "slate-permuted " in line and "±" in line)
    court.main()
    assert capsys.readouterr().out.splitlines() == first[4:]
