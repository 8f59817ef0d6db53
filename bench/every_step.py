"""Lets every operation on a library's files fail once, one after another, for each command that changes it.

    python bench/every_step.py [--sample 60] [--only add] [--seed 0] [--jobs 4] [--part 1/8]

The n-th operation (open, read, write, flush, rename, delete, make a folder, cut short; SQLite's included) fails,
for n = 1, 2, … until none is left: with EIO; with ENOSPC, from then on; with a short write; with EINTR; with EACCES.
Each time the command must end well or say in one sentence what is wrong and what to do; the library must verify, hold
what it held before or after the command, and end as if nothing had been when the command runs again.

Commands wait more than they compute, so ``--jobs`` tries several cases at a time; ``--part 1/8`` tries an eighth of
them. Ends with exit code 1 if anything was lost, hidden or said badly. All of it takes ten minutes of processor
time; it needs a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import gc
import importlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import attack_library as target
from momentseek.cluster.shards.making import split_library
from momentseek.core.errors import MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.core.reports import text_table
from momentseek.core.workers import Message
from momentseek.library.encoders import vision_spec
from momentseek.library.store import LibraryStore
from momentseek.media.sandbox import calls, worker
from momentseek.recognition.encoders import registry

OPEN, WRITE, SYNC, RENAME, UNLINK, MKDIR, TRUNCATE, READ, CREATE = (1 << n for n in range(9))
LIBRARY_VARIABLE = "MOMENTSEEK_FAILING_CALLS"


class Fault(NamedTuple):
    """A way in which operations fail: which of them, how, and whether all later ones do too."""

    kinds: int
    error: int
    stays: bool = False
    short: bool = False


FAULTS = {
    "EIO": Fault(OPEN | WRITE | SYNC | RENAME | UNLINK | MKDIR | TRUNCATE | READ, errno.EIO),
    "ENOSPC from then on": Fault(WRITE | SYNC | RENAME | MKDIR | TRUNCATE | CREATE, errno.ENOSPC, stays=True),
    "a short write": Fault(WRITE, 0, short=True),
    "EINTR": Fault(OPEN | WRITE | SYNC | READ, errno.EINTR),
    "EACCES": Fault(OPEN | RENAME | UNLINK | MKDIR, errno.EACCES),
}
BAD = "LOST, HIDDEN OR SAID BADLY"
NOT_REACHED = "the operation did not come this time"
REMEDIES = ("run", "check", "make room", "move", "try again", "copy", "wait", "bring", "choose", "name another")
"""What a good sentence asks somebody to do."""
BOTH_ENCODERS = "mean-colour+mean-colour-2"
Case = tuple[str, str, int]
"""A command, a fault, and the number of the operation that fails."""


def shard(library: LibraryStore) -> object:
    """Split the library, next to itself."""
    return split_library(library.path, library.path.parent / "shards", 2)


def repair(library: LibraryStore) -> object:
    """Mend the library, and make again what was lost."""
    report = library.verify(repair=True)
    library.retry()
    return report


def commands(films: Sequence[Path]) -> dict[str, target.Step]:
    """The commands, each as one step."""
    first = {name: steps[0] for name, steps in target.commands(films).items()}
    return first | {"shard": shard, "repair": repair, "second pass": lambda library: library.reencode(BOTH_ENCODERS)}


def stand_in_for_costly_parts() -> None:
    """Decode in the process that asks, and let a cheap encoder encode what is said: neither touches the library."""

    def decode_here(task: str, path: Path | PinnedFile, settings: dict[str, Any]) -> Generator[Message]:
        yield from worker.TASKS[task](path, **settings)

    target.PART_SECONDS = 0.001  # kills need time to find a part under way; faults do not
    calls.run_task = decode_here  # type: ignore[assignment]
    registry.load_minilm = target.MeanColour  # type: ignore[assignment]


class EveryStep:
    """A library, copies of it, and what happened to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls = ctypes.CDLL(os.environ[LIBRARY_VARIABLE])
        self._calls.counted.restype = self._calls.failed.restype = ctypes.c_long
        target.install_encoders()
        stand_in_for_costly_parts()
        self.films = target.in_child(target.make_films, folder / "films")
        self.base = folder / "base"
        target.in_child(target.make_base, self.base, self.films)
        self.damaged = folder / "damaged"
        shutil.copytree(self.base, self.damaged)
        segment = max((self.damaged / "segments").glob("*.vec"), key=lambda path: path.stat().st_size)
        data = bytearray(segment.read_bytes())
        data[-100] ^= 1
        segment.write_bytes(data)
        self.commands = commands(self.films)
        for module in target.in_child(self._modules):  # once here, rather than in every process
            importlib.import_module(module)
        gc.freeze()  # a collection in a forked process would copy all of this one's memory
        self.goals = {name: self._goal(name) for name in self.commands}

    def _modules(self) -> list[str]:
        """What the commands import late."""
        before = set(sys.modules)
        for name, step in self.commands.items():
            with target.open_library(self._copy(name)) as library:
                step(library)
                target.state_of(library)
        return sorted(name for name in set(sys.modules) - before if sys.modules[name].__spec__)

    def _copy(self, name: str) -> Path:
        """A copy of the library that a command begins with, in a folder of its own."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(self.damaged if name == "repair" else self.base, place / "library")
        return place / "library"

    def _goal(self, name: str) -> tuple[target.State, target.State]:
        """The state before and after a command, when nothing goes wrong."""
        folder = self._copy(name)
        before = target.in_child(_state, self.base)
        done, said = self._run(name, folder, FAULTS["EIO"], 0)
        if done != 0:
            raise SystemExit(f"{name} fails by itself: {said}")
        after = target.in_child(_state, folder)
        shutil.rmtree(folder.parent)
        return before, after

    def cases(self) -> list[Case]:
        """Every operation of every command, for every fault."""
        found = []
        for name in self.commands:
            for fault, how in FAULTS.items():
                folder = self._copy(name)
                _, said = self._run(name, folder, how, 0)
                found += [(name, fault, number) for number in range(1, int(said.split()[0]) + 1)]
                shutil.rmtree(folder.parent)
        return found

    def _run(self, name: str, folder: Path, fault: Fault, place: int) -> tuple[int, str]:
        """Run a command in a process of its own: its exit code, then how many operations there were and failed, and
        what it said.
        """
        written = folder.parent / "said"
        child = os.fork()
        if not child:
            code, said = 0, ""
            below = str(folder.parent).encode() + b"/"
            self._calls.arm(below, ctypes.c_long(place), fault.kinds, fault.error, int(fault.stays), int(fault.short))
            try:
                with target.open_library(folder) as library:
                    self.commands[name](library)
            except MomentseekError as e:
                code, said = 2, str(e)
            except BaseException:
                code, said = 1, traceback.format_exc()
            counted, failed = self._calls.counted(), self._calls.failed()
            self._calls.arm(b"", ctypes.c_long(0), 0, 0, 0, 0)
            written.write_text(f"{counted} {failed}\n{said}")
            os._exit(code)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), written.read_text() if written.exists() else "0 0\ngone"

    def try_case(self, case: Case) -> str:
        """What happens when one operation fails."""
        name, fault, place = case
        folder = self._copy(name)
        code, text = self._run(name, folder, FAULTS[fault], place)
        numbers, _, said = text.partition("\n")
        if code not in (0, 2):
            happened = f"{BAD}: exit code {code}\n{said}"
        elif code == 2 and ("\n" in said.strip() or not any(word in said for word in REMEDIES)):
            happened = f"{BAD}: {said}"
        elif not int(numbers.split()[1]):
            happened = NOT_REACHED
        else:
            after = target.in_child(_check, folder, self.commands[name], name, self.goals[name], code == 0)
            happened = f"{'said in a sentence' if code else 'went on without it'}; {after}"
        shutil.rmtree(folder.parent)
        return happened

    def try_cases(self, cases: Sequence[Case], last: Collection[Case]) -> Counter[tuple[str, str]]:
        """Try some cases, and go on after the last one of a command until no operation is left; what happened, how
        often. Threads make the number of operations differ a little from run to run.
        """
        outcomes: Counter[tuple[str, str]] = Counter()
        for name, fault, first in cases:
            for place in itertools.count(first) if (name, fault, first) in last else (first,):
                happened = self.try_case((name, fault, place))
                if place > first and happened == NOT_REACHED:
                    break
                if BAD in happened:
                    print(f"{(name, fault, place)}: {happened}", file=sys.stderr, flush=True)
                outcomes[fault, happened.partition(BAD)[1] or happened] += 1
        return outcomes


def _state(folder: Path) -> target.State:
    with target.open_library(folder) as library:
        return target.state_of(library)


def _check(
    folder: Path, step: Callable[[LibraryStore], object], name: str, goal: tuple[target.State, target.State], done: bool
) -> str:
    """Whether a library is whole after a fault, and ends as it should when the command runs again."""
    before, after = goal
    shards = folder.parent / "shards"
    try:
        with target.open_library(folder) as library:
            report = library.verify()
            if report.problems and name != "repair":
                return f"{BAD}: {report.problems[0]}"
            if name not in ("repair", "second pass"):
                found = target.state_of(library)
                begun = target.is_on_the_way(found, after)  # a track that was not made is a note, and made later
                if found != after and not begun and (done or found != before):
                    return f"{BAD}: neither the state before nor after"
            if name == "shard" and done != shards.is_dir():
                return f"{BAD}: half of a library in shards"
            done = done or (name == "judge" and target.state_of(library) == after)
            # Once the library has both encoders, the command would make the first one's vectors from the files again.
            if name == "second pass" and (done or vision_spec(library.catalog) == BOTH_ENCODERS):
                library.encode(again=True)
            elif not (done and name in ("judge", "shard", "remove")):  # which cannot be done twice, or add to it
                step(library)
            if target.state_of(library) != after or not library.verify().clean:
                return f"{BAD}: another end than without it"
            if list(folder.parent.glob(".*")):
                return f"{BAD}: something is left behind"
    except MomentseekError as e:
        return f"{BAD}: refused afterwards: {e}"
    return "nothing lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="try only so many, chosen at random")
    parser.add_argument("--only", nargs="+", metavar="COMMAND")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only the K-th of N parts of all cases")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="try N cases at a time")
    given = parser.parse_args()
    if LIBRARY_VARIABLE not in os.environ:
        sys.exit(_again())
    outcomes: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as made:
        attack = EveryStep(Path(made))
        part, parts = map(int, given.part.split("/"))
        wanted = [case for case in attack.cases() if not given.only or case[0] in given.only]
        cases = [case for case in wanted if case[2] % parts == part % parts]
        chosen = (
            cases if given.sample is None else random.Random(given.seed).sample(cases, min(given.sample, len(cases)))
        )
        print(f"{len(chosen):,} of {len(cases):,} operations fail", file=sys.stderr)
        last = () if given.sample else {(name, fault, place) for (name, fault), place in _last_places(wanted).items()}
        shares = [(chosen[at :: given.jobs], last) for at in range(given.jobs)]
        with ThreadPoolExecutor(given.jobs) as pool:
            for found in pool.map(lambda share: target.in_child(attack.try_cases, *share), shares):
                outcomes += found
    rows = [[*key, str(number)] for key, number in sorted(outcomes.items())]
    print(text_table(["fault", "what happened", "times"], rows, align="llr"))
    sys.exit(any(BAD in happened for _, happened in outcomes))


def _last_places(cases: Sequence[Case]) -> dict[tuple[str, str], int]:
    """The number of operations of each command and fault."""
    return {(name, fault): place for name, fault, place in cases}  # in order, so the last one stays


def _again() -> int:
    """Run this program with the layer that fails, compiled for the occasion."""
    with tempfile.TemporaryDirectory() as made:
        layer = f"{made}/failing_calls.so"
        source = Path(__file__).with_name("failing_calls.c")
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", "-o", layer, str(source), "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": layer, LIBRARY_VARIABLE: layer}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    main()
