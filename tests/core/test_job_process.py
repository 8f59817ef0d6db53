"""Heavy work in a process of its own: whatever goes wrong with a file costs that file, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from job_worker import WORDS

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.workers import JobProcess


def _ask(process: JobProcess, path: str) -> list[Any]:
    return list(process.ask({"path": path}))


def test_each_fault_costs_one_file_and_the_next_one_is_done() -> None:
    with JobProcess("job_worker", [], WORDS, patience=20) as process:
        ((first,),) = [[part["pid"] for part in _ask(process, "good")]]
        for path, sentence in {
            "bad": "bad: is no film",
            "odd": r"odd: its film cannot be done \(ValueError: what is this\)",
            "hungry": "hungry: its film cannot be done with the memory that there is",
        }.items():
            with pytest.raises(MediaError, match=f"^{sentence}$"):
                _ask(process, path)
        assert _ask(process, "good") == [{"pid": first}]
        with pytest.raises(MediaError, match=r"^crash: the worker stops at its film \(it ended with -6\); convert it$"):
            _ask(process, "crash")
        (other,) = _ask(process, "good")
        assert other["pid"] != first
        process.patience = 0.2
        with pytest.raises(MediaError, match=r"^hang: its film cannot be done within 0 seconds a part$"):
            _ask(process, "hang")


def test_a_process_that_cannot_work_says_so() -> None:
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
