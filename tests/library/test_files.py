"""Finding files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.files import find_videos


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))


def names(root: Path, *paths: str, **options: object) -> list[str]:
    return [found.name for found in find_videos([root / p for p in paths or ("",)], **options).files]  # type: ignore[arg-type]


def test_folders_give_videos_by_name_and_depth(tmp_path: Path) -> None:
    tree(tmp_path, "b.mp4", "a.MKV", "notes.txt", "x/c.webm", "x/y/d.mov", ".hidden.mp4", ".git/e.mp4")
    assert names(tmp_path) == ["a.MKV", "b.mp4", "x/c.webm", "x/y/d.mov"]
    assert names(tmp_path, recursive=False) == ["a.MKV", "b.mp4"]
    assert [found.size for found in find_videos([tmp_path / "x"]).files] == [8, 9]


def test_a_named_file_counts_whatever_it_is_called(tmp_path: Path) -> None:
    tree(tmp_path, "film.bin", ".hidden.mp4")
    assert names(tmp_path, "film.bin", ".hidden.mp4") == ["film.bin", ".hidden.mp4"]


def test_exclude_takes_names_and_paths(tmp_path: Path) -> None:
    tree(tmp_path, "a.mp4", "draft1.mp4", "x/draft2.mp4", "x/b.mp4", "old/c.mp4")
    assert names(tmp_path, exclude=["draft*"]) == ["a.mp4", "old/c.mp4", "x/b.mp4"]
    assert names(tmp_path, exclude=["old", "x/*2.mp4"]) == ["a.mp4", "draft1.mp4", "x/b.mp4"]


def test_exclude_has_no_regard_to_case(tmp_path: Path) -> None:
    tree(tmp_path, "Draft1.mp4", "x/ÄRGER.mp4", "b.mp4")
    assert names(tmp_path, exclude=["draft*", "ärger.*"]) == ["b.mp4"]


def test_a_pattern_over_a_loop_of_links_names_each_thing_once(tmp_path: Path) -> None:
    tree(tmp_path, "v/a.mp4", "v/x/b.mp4", "v/.hidden/c.mp4")
    (tmp_path / "v" / "x" / "up").symlink_to(tmp_path / "v")
    (tmp_path / "v" / "gone.mp4").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "v" / "x" / "pipe.mp4")
    found = find_videos([tmp_path / "v" / "**" / "*.mp4"])
    assert [file.path.name for file in found.files] == ["a.mp4", "b.mp4"]
    assert sorted(path.name for path, _ in found.unusable) == ["gone.mp4", "pipe.mp4"]
    twice = find_videos([tmp_path / "v" / "*.mp4", tmp_path / "v", tmp_path / "v" / "x" / "up"])
    assert sorted(path.name for path, _ in twice.unusable) == ["gone.mp4", "pipe.mp4"]


def test_exclude_holds_for_folders_below_a_pattern(tmp_path: Path) -> None:
    tree(tmp_path, "odd/v/a.mp4", "odd/v/odd1/b.mp4", "odd/v/x/odd/c.mp4", "odd/v/x/d.mp4")
    assert names(tmp_path, "odd/v/**/*.mp4", exclude=["odd*"]) == ["a.mp4", "d.mp4"]
    assert names(tmp_path, "odd/v/*", exclude=["odd*"]) == ["a.mp4", "d.mp4"]
    assert names(tmp_path, "odd/v/**/*.mp4", exclude=["x/odd"]) == ["a.mp4", "b.mp4", "d.mp4"]


def test_patterns_are_expanded(tmp_path: Path) -> None:
    tree(tmp_path, "a1.mp4", "a2.mp4", "b.mp4", "x/a3.mp4")
    assert names(tmp_path, "a*.mp4") == ["a1.mp4", "a2.mp4"]
    assert names(tmp_path, "**/a*.mp4") == ["a1.mp4", "a2.mp4", "a3.mp4"]
    assert names(tmp_path, "?/a[0-9].mp4") == ["a3.mp4"]
    assert names(tmp_path, "x*") == ["a3.mp4"]


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "films/a.mp4")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [found.path for found in find_videos(["~/films"]).files] == [tmp_path / "films" / "a.mp4"]


def test_a_path_with_glob_characters_that_exists_is_itself(tmp_path: Path) -> None:
    tree(tmp_path, "a[1].mp4", "a1.mp4")
    assert names(tmp_path, "a[1].mp4") == ["a[1].mp4"]


@pytest.mark.parametrize(("path", "why"), [("none.mp4", "does not exist"), ("none*.mp4", "matches no file")])
def test_what_is_not_there_is_refused(tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(MomentseekError, match=why):
        find_videos([tmp_path / path])


def test_links_lead_to_a_file_once_and_loops_end(tmp_path: Path) -> None:
    tree(tmp_path, "a.mp4", "x/b.mp4")
    (tmp_path / "again.mp4").symlink_to(tmp_path / "a.mp4")
    (tmp_path / "x" / "up").symlink_to(tmp_path)
    (tmp_path / "y").symlink_to(tmp_path / "x")
    found = find_videos([tmp_path, tmp_path / "x"])
    assert [file.path for file in found.files] == [tmp_path / "a.mp4", tmp_path / "x" / "b.mp4"]
    assert found.unusable == []


def test_broken_links_and_pipes_are_told(tmp_path: Path) -> None:
    (tmp_path / "gone.mp4").symlink_to(tmp_path / "nothing")
    (tmp_path / "self.mp4").symlink_to(tmp_path / "self.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    os.mkfifo(tmp_path / "pipe")
    found = find_videos([tmp_path])
    assert found.files == []
    assert [(path.name, reason.split(": ")[1]) for path, reason in found.unusable] == [
        ("gone.mp4", "is a link that leads nowhere"),
        ("pipe.mp4", "is a pipe, not a file"),
        ("self.mp4", "is a link that leads nowhere"),
    ]


def test_the_library_itself_is_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, "a.mp4", "library/b.mp4", "library/work/c.mp4")
    assert names(tmp_path, skip=tmp_path / "library") == ["a.mp4"]


def test_names_that_are_not_text_become_text(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.mp4"
    with open(raw, "wb") as file:
        file.write(b"x")
    (found,) = find_videos([tmp_path]).files
    assert os.fsencode(found.path) == raw
    assert found.name == "caf\ufffd.mp4"
