"""The writer's lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.paths import hold_lock

HOLD = """
import sys, time
from pathlib import Path
from momentseek.library.paths import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    with hold_lock(tmp_path), pytest.raises(MomentseekError, match=f"process {os.getpid()} "), hold_lock(tmp_path):
        pytest.fail("two writers")
    with hold_lock(tmp_path):
        pass


def test_a_dead_process_lets_go(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(MomentseekError, match=f"process {holder.pid} "), hold_lock(tmp_path, wait=0.2):
        pytest.fail("two writers")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with hold_lock(tmp_path, wait=5):
        pass


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="cannot be opened"), hold_lock(tmp_path / "none"):
        pass
