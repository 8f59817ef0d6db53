"""A server that speaks S3 and that nobody here wrote, where one is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that speaks S3 (moto's), where one is installed: ``pip install 'moto[server]'``."""
    server = os.environ.get("MOMENTSEEK_MOTO_SERVER") or shutil.which("moto_server")
    if server is None:
        pytest.skip("moto's server is not installed; name it in MOMENTSEEK_MOTO_SERVER")
    pytest.importorskip("obstore")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(port)], **silent)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address).close()
                break
            except OSError:
                time.sleep(0.1)
        for name, value in (
            ("AWS_ENDPOINT_URL", address), ("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ):  # fmt: skip
            monkeypatch.setenv(name, value)
        yield address
    finally:
        process.terminate()
        process.wait(20)
