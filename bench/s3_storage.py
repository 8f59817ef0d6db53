"""A server that speaks S3, for benchmarks that need one: moto's, in an environment of its own.

``pip install 'moto[server]'`` elsewhere, and name its ``moto_server`` by ``MOMENTSEEK_MOTO_SERVER``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as one:
        one.bind((host, 0))
        return int(one.getsockname()[1])


@contextmanager
def serve_s3(bucket: str, host: str = "127.0.0.1") -> Iterator[None]:
    """A server that speaks S3 for the time of a ``with``, with a bucket, found by the environment."""
    port = free_port(host)
    server = os.environ.get("MOMENTSEEK_MOTO_SERVER", "moto_server")
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([server, "-H", host, "-p", str(port)], **silent)
    address = f"http://{host}:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{address}/{bucket}", method="PUT")).close()
                break
            except OSError:
                time.sleep(0.1)
        os.environ |= {
            "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }  # fmt: skip
        yield
    finally:
        process.terminate()
        process.wait(20)
