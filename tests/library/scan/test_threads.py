from __future__ import annotations

import threading
from functools import partial

import pytest

from momentseek.library.scan import threads


def test_every_task_is_done_once_from_many_callers():
    done: list[int] = []
    callers = [
        threading.Thread(target=threads.run_together, args=([partial(done.append, n) for n in range(i, 2000, 8)],))
        for i in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(done) == list(range(2000))


@pytest.mark.parametrize("cores", [1, 4])
def test_an_error_in_a_task_reaches_the_caller(monkeypatch, cores):
    monkeypatch.setenv("MOMENTSEEK_THREADS", str(cores))
    for failing in range(6):
        tasks = [partial(divmod, 1, int(n != failing)) for n in range(6)]
        with pytest.raises(ZeroDivisionError):
            threads.run_together(tasks)


def test_nothing_to_do_is_no_error():
    threads.run_together([])
