"""The process that hears: it takes a job a line on its standard input and answers in lines of JSON.

A job is ``{"path", "begin", "language"}``. Answers are ``{"part": …}`` after each part, then ``{"end": true}`` or
``{"failed": "one sentence"}``. It ends when its standard input does, at once, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any

from momentseek.errors import MomentseekError

MAX_MEMORY_BYTES = 6 << 30
"""Address space that the process may use: the largest recogniser takes about half."""


def main() -> None:
    """Hear what is asked for until nobody asks any more."""
    from momentseek.transcription.transcriber import model_folder
    from momentseek.transcription.whisper import Whisper

    spec, threads = sys.argv[1], int(sys.argv[2])
    _limit_memory()
    with suppress(OSError, AttributeError):
        os.nice(5)  # pictures and searches come first
    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    try:
        transcriber = Whisper(model_folder(spec), threads)
    except Exception as e:
        _answer({"broken": str(e) if isinstance(e, MomentseekError) else f"cannot be loaded ({e})"})
        return
    _answer({"ready": True})
    while True:
        _hear_job(transcriber, jobs.get())


def _hear_job(transcriber: Any, job: dict[str, Any]) -> None:
    from momentseek.transcription.hearing import hear_file

    try:
        for part in hear_file(transcriber, job["path"], job["begin"], job["language"]):
            _answer({"part": asdict(part)})
    except MomentseekError as e:
        _answer({"failed": str(e)})
    except MemoryError:
        _answer({"failed": "its sound needs more memory than there is"})
    except Exception as e:  # whatever a decoder or the recogniser makes of a hostile file costs that file alone
        _answer({"failed": f"its sound cannot be heard ({type(e).__name__}: {e})"})
    else:
        _answer({"end": True})


def _read_jobs(jobs: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    os._exit(0)


def _answer(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


if __name__ == "__main__":
    main()
