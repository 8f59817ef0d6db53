"""Heavy work in a separate process: a failure costs one file, and is reported in one sentence."""

from __future__ import annotations

from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_worker import WORDS

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.workers import JobProcess, Message, WireError, receive_message, send_message


def _ask(process: JobProcess, path: str) -> list[Any]:
    return list(process.ask(path))


def test_each_failure_costs_one_file() -> None:
    with JobProcess("job_worker", [], WORDS, timeout=20) as process:
        ((first,),) = [[part["pid"] for part in _ask(process, "good")]]
        for path, sentence in {
            "bad": "bad: is no film",
            "odd": r"odd: its film cannot be done \(ValueError: what is this\)",
        }.items():
            with pytest.raises(MediaError, match=f"^{sentence}$"):
                _ask(process, path)
        assert _ask(process, "good") == [{"pid": first}]
        with pytest.raises(MediaError, match=r"^hungry: its film cannot be done with the memory that there is$"):
            _ask(process, "hungry")
        with pytest.raises(MediaError, match=r"^crash: the worker stops at its film \(it ended with -6\); convert it$"):
            _ask(process, "crash")
        (other,) = _ask(process, "good")
        assert other["pid"] != first
        process.timeout = 0.2
        with pytest.raises(MediaError, match=r"^hang: its film cannot be done within 0 seconds a part$"):
            _ask(process, "hang")
        process.timeout = 20
        for _ in process.ask("hang"):
            break
        assert len(_ask(process, "good")) == 1


def test_broken_process_is_reported() -> None:
    with (
        JobProcess("job_worker", ["broken"], WORDS) as process,
        pytest.raises(MomentseekError, match=r"^the worker: its model is damaged; download it again$"),
    ):
        _ask(process, "good")
    with (
        JobProcess("no_such_module", [], WORDS) as process,
        pytest.raises(MomentseekError, match="the worker cannot be started"),
    ):
        _ask(process, "good")


def test_messages_round_trip_or_fail(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    sent = Message("item", {"text": "caf\udce9", "number": 0.1 + 0.2}, np.arange(10, dtype=np.uint8))
    with FileIO(path, "w") as out:
        send_message(out, sent)
    whole = path.read_bytes()
    with FileIO(path) as source:
        got = receive_message(source)
    assert (got.kind, got.content, bytes(got.payload)) == (sent.kind, sent.content, bytes(range(10)))
    hostile = [whole[:n] for n in range(len(whole))]
    hostile += [
        b"\xff" * 8,
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x06\0\0\0\0\0\0\0[1, 2]",
        b"\x04\0\0\0\0\0\0\0null",
        b"\xff\xff\x0f\0\0\0\0\0" + b"[" * 2**20,
    ]
    for data in hostile:
        path.write_bytes(data)
        with FileIO(path) as source, pytest.raises(WireError):
            receive_message(source)
