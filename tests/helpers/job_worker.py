"""A worker for tests of job processes: does as the job's path says. ``python -m job_worker``"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.workers import JobWords, serve_jobs

WORDS = JobWords("the worker", "its film", "cannot be done")


def _load() -> Callable[..., Iterator[dict[str, Any]]]:
    if "broken" in sys.argv:
        raise MomentseekError("its model is damaged; download it again")
    return _work


def _work(path: str) -> Iterator[dict[str, Any]]:
    print("what a library prints is no answer", flush=True)
    yield {"pid": os.getpid()}
    match path:
        case "bad":
            raise MediaError("bad: is no film")
        case "odd":
            raise ValueError("what is this")
        case "hungry":
            bytearray(1 << 40)
        case "crash":
            os.abort()
        case "hang":
            time.sleep(60)


if __name__ == "__main__":
    serve_jobs(_load, 4 << 30)
