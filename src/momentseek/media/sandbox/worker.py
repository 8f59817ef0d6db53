"""The process that decodes: ``python -m momentseek.media.sandbox.worker GIGABYTES [device]``.

It talks on stdin and stdout, and ends when its stdin does, so that it never outlives the program that started it,
however that ended.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from contextlib import suppress
from io import RawIOBase

from momentseek.errors import MomentseekError
from momentseek.media.pulse import listen
from momentseek.media.sandbox.limits import SandboxLimits
from momentseek.media.sandbox.tasks import TASKS
from momentseek.media.sandbox.wire import Message, WireError, receive_message, send_message

SECONDS_BETWEEN_BEATS = 0.5


def main(gigabytes: float, device: bool) -> None:
    """Do what is asked, one task after another, until there is nobody left to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then lets go of this process
    asked, replies = _private_pipes()
    with suppress(ImportError):
        import av  # noqa: F401
    SandboxLimits(gigabytes, device=device).enforce()
    inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(asked, inbox), daemon=True).start()
    listen(_Beats(replies).beat)
    send_message(replies, Message("ready"))
    while True:
        _serve(inbox.get(), replies)


def _serve(request: Message, replies: RawIOBase) -> None:
    try:
        for reply in TASKS[request.kind](**request.content):
            send_message(replies, reply)
    except WireError:
        os._exit(0)
    except MomentseekError as e:
        send_message(replies, Message("error", {"type": type(e).__name__, "text": str(e)}))
    except MemoryError:
        send_message(replies, Message("hungry"))
        os._exit(0)  # what is left of the memory may be in pieces
    except Exception as e:
        send_message(replies, Message("odd", {"text": f"{type(e).__name__}: {e}"}))


def _hear(asked: RawIOBase, inbox: queue.SimpleQueue[Message]) -> None:
    """Take requests, in a thread of its own, which also notices in the midst of a task that nobody waits for it."""
    while True:
        try:
            inbox.put(receive_message(asked))
        except WireError:
            os._exit(0)


def _private_pipes() -> tuple[RawIOBase, RawIOBase]:
    """The two pipes, out of the reach of libraries that print."""
    asked, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return open(asked, "rb", buffering=0), open(replies, "wb", buffering=0)


class _Beats:
    """Passes signs of life on, not more often than anybody needs them."""

    def __init__(self, replies: RawIOBase) -> None:
        self.replies = replies
        self.due = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now >= self.due:
            self.due = now + SECONDS_BETWEEN_BEATS
            send_message(self.replies, Message("beat"))


if __name__ == "__main__":
    main(float(sys.argv[1]), "device" in sys.argv[2:])
