"""A cluster that lets everybody in is refused; one with a token, or whoever says so, is joined."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("ray")
PORT = 26379
JOIN = "from momentseek.cluster.connection import join_cluster\nwith join_cluster('127.0.0.1:{}'{}): print('joined')"


@contextmanager
def head(tmp_path: Path, port: int, **environment: str) -> Iterator[dict[str, str]]:
    """A head node on this machine alone, for the time of a ``with``."""
    env = {**os.environ, "HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0", **environment}
    ray = Path(sys.executable).with_name("ray")
    words = ["start", "--head", "--port", str(port), "--node-ip-address", "127.0.0.1", "--num-cpus", "1"]
    rest = ["--include-dashboard", "false", "--temp-dir", f"/tmp/momentseek-ray-{os.getpid()}-{port}", "--block"]
    process = subprocess.Popen([ray, *words, *rest], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield env
    finally:
        process.terminate()
        process.wait(60)


def join(port: int, env: dict[str, str], more: str = "") -> subprocess.CompletedProcess[str]:
    for _ in range(20):
        done = subprocess.run(
            [sys.executable, "-c", JOIN.format(port, more)], env=env, capture_output=True, text=True, timeout=120
        )
        if "no Ray cluster answers" not in done.stderr:
            break
    return done


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_cluster_without_a_token_is_refused_unless_one_insists(tmp_path: Path) -> None:
    with head(tmp_path, PORT, RAY_AUTH_MODE="disabled") as env:
        refused = join(PORT, env)
        assert "asks nobody for a token, so whoever reaches its ports can run code on it" in refused.stderr
        assert refused.stdout == ""
        assert join(PORT, env, ", insecure=True").stdout == "joined\n"
        assert join(PORT, {**env, "MOMENTSEEK_INSECURE_CLUSTER": "1"}).stdout == "joined\n"


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_the_documented_cluster_lets_in_who_has_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a" * 40)
    with head(tmp_path, PORT + 1, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token)) as env:
        assert join(PORT + 1, env).stdout == "joined\n"
        (tmp_path / "other").write_text("b" * 40)
        wrong = join(PORT + 1, {**env, "RAY_AUTH_TOKEN_PATH": str(tmp_path / "other")})
        assert "asks for another token" in wrong.stderr
        none = {key: value for key, value in env.items() if not key.startswith("RAY_AUTH")}
        assert join(PORT + 1, none).stdout == ""
