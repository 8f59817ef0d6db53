"""The attack of ``bench/attack.py`` in small: nothing is lost, nothing is hidden."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parent.parent.parent / "bench" / "attack.py"


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.figures)])
def test_kill_during_transcription_and_ocr_does_not_change_the_result(kills: int) -> None:
    numbers = ("--kills", str(kills), "--errors", "0", "--flips", "0", "--mutants", "0", "--only", "add", "correct")
    done = subprocess.run([sys.executable, str(ATTACK), *numbers], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIGKILL during add" in done.stdout


@pytest.mark.figures
def test_the_attack_on_a_library_finds_nothing() -> None:
    numbers = ("--kills", "25", "--errors", "20", "--flips", "20", "--mutants", "20")
    done = subprocess.run([sys.executable, str(ATTACK), *numbers], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
