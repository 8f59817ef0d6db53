"""Three machines whose nodes are killed and whose cables are cut while videos are added and searched for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.figures
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("size", [["--videos", "24", "--kills", "1", "--cuts", "1"]], ids=["small"])
def test_nothing_is_lost_and_nothing_is_wrong(root: Path, size: list[str]) -> None:
    """``bench/cluster_cable.py`` without arguments does the same with 200 videos."""
    for module in ("av", "ray", "obstore"):
        pytest.importorskip(module)
    sys.path.insert(0, str(root / "bench"))
    try:
        from wires import can_make_namespaces
    finally:
        sys.path.pop(0)
    if not can_make_namespaces():
        pytest.skip("network namespaces cannot be made here: be root, and have iproute2")
    server = os.environ.get("MOMENTSEEK_MOTO_SERVER") or shutil.which("moto_server")
    if not server:
        pytest.skip("moto's server is not installed; name it in MOMENTSEEK_MOTO_SERVER")
    done = subprocess.run(
        [sys.executable, "cluster_cable.py", *size],
        cwd=root / "bench", env=os.environ | {"MOMENTSEEK_MOTO_SERVER": server}, capture_output=True, text=True,
        timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every one of 24 videos once, vectors equal bit for bit, verify clean" in done.stdout
    assert done.stdout.count("whole again") == 2
