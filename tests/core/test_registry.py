from __future__ import annotations

import threading
from pathlib import Path

import pytest

from momentseek.core.registry import Registry


def test_first_lookup_from_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "many_plug_ins"
    package.mkdir()
    for name in ("__init__", *(f"plug_in_{n}" for n in range(20))):
        (package / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    faults: list[BaseException] = []

    def load(things: Registry[int], ready: threading.Barrier) -> None:
        ready.wait()
        try:
            things.load()
        except BaseException as e:
            faults.append(e)

    for _ in range(40):
        things: Registry[int] = Registry("thing", "many_plug_ins")
        ready = threading.Barrier(4)
        threads = [threading.Thread(target=load, args=(things, ready)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not faults
