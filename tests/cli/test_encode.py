"""``add --no-second-pass`` and ``encode``, with trivial encoders."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from momentseek.recognition.encoders import registry


@pytest.fixture
def films(tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "IMAGE_TEXT_ENCODERS", registry.IMAGE_TEXT_ENCODERS.copy())
    monkeypatch.setattr(registry, "TEXT_ENCODERS", registry.TEXT_ENCODERS.copy())
    runpy.run_path(str(Path(__file__).parent.parent / "library" / "light.py"))["install"]()
    folder = tmp_path / "films"
    folder.mkdir()
    for name, colour in (("museum", (200, 20, 20)), ("zoo", (20, 20, 200))):
        make_video(folder / f"{name}.mp4", [(3.0, colour)], rate=5, size=(64, 48))
    return folder


def test_second_pass_can_be_skipped_and_run_later(momentseek: Callable[..., Any], films: Path, tmp_path: Path) -> None:
    place = ("--library", tmp_path / "library")
    added = momentseek("add", films, "--no-second-pass", "--encoder", "colours+shades", *place)
    assert (added.returncode, "by both encoders" in added.stderr) == (0, False)
    waits = momentseek("status", *place).stdout
    assert f"encoded   0 of 2 videos by shades; the rest: momentseek encode --library {tmp_path / 'library'}" in waits
    one = momentseek("encode", "zoo*", *place)
    assert (one.returncode, one.stderr.splitlines()[-1].split(" in ")[0]) == (
        0,
        "1 video encoded by both encoders (00:00:03",
    )
    assert "encoded   1 of 2 videos by shades" in momentseek("status", *place).stdout
    found = json.loads(momentseek("status", "--json", *place).stdout)
    assert (found["second_encoder"], found["seen"], found["unseen"]) == ("shades", 1, 1)
    rest = momentseek("encode", "--json", *place)
    assert json.loads(rest.stdout)["seen"] == 1
    assert "encoded   2 of 2 videos by shades\n" in momentseek("status", *place).stdout


def test_older_library_is_upgraded_by_one_command(momentseek: Callable[..., Any], films: Path, tmp_path: Path) -> None:
    place = ("--library", tmp_path / "library")
    momentseek("add", films, "--encoder", "colours", *place)
    assert "encoded " not in momentseek("status", *place).stdout
    refused = momentseek("encode", *place)
    assert (refused.returncode, "has one encoder, colours" in refused.stderr) == (2, True)
    upgraded = momentseek("reencode", "--encoder", "colours+shades", *place)
    assert (upgraded.returncode, "2 videos encoded by both encoders" in upgraded.stderr) == (0, True)
    assert "encoded   2 of 2 videos by shades\n" in momentseek("status", *place).stdout
    assert momentseek("verify", *place).returncode == 0
