"""What is fuzzed holds for the seeds it starts from, and the fuzzer would notice if it did not."""

from __future__ import annotations

import importlib.util
import random
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from momentseek.core.errors import MomentseekError

FUZZ = Path(__file__).parent.parent / "fuzz"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FUZZ / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


targets = _load("targets")


@pytest.mark.parametrize("name", targets.TARGETS)
def test_seeds_and_their_mutations_are_read_or_refused(name: str) -> None:
    seeds = sorted((FUZZ / "corpus" / name).iterdir())
    assert seeds
    chance = random.Random(name)
    sound = 0
    for seed in seeds:
        data = seed.read_bytes()
        with suppress(MomentseekError):
            targets.TARGETS[name](data)
            sound += 1
        targets.try_input(name, data[: len(data) // 2])
        for _ in range(3):
            damaged = bytearray(data)
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            targets.try_input(name, bytes(damaged))
    assert sound >= 2


def test_every_target_can_be_chosen() -> None:
    assert set(_load("run").NAMES) == set(targets.TARGETS)


def test_an_error_of_another_kind_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(targets.TARGETS, "queries", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        targets.try_input("queries", b"")
