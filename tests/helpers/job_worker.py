"""A worker for tests of job processes: does as the job's path says. ``python -m job_worker WORDS``"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.workers import Job, JobWords, Work, serve_jobs

WORDS = JobWords("the worker", "its film", "cannot be done")


def _load() -> Work:
    if "broken" in sys.argv:
        raise MomentseekError("its model is damaged; download it again")

    def work(job: Job) -> Iterator[Any]:
        yield {"pid": os.getpid()}
        match job["path"]:
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

    return work


if __name__ == "__main__":
    serve_jobs(_load, WORDS, 4 << 30)
