"""An attack on a library's data: what is lost, what is hidden, and what is said.

    python bench/attack.py [--kills 100] [--errors 80] [--flips 120] [--seed 0] [--only add]

1. Kills: the process is killed (SIGKILL) at a random instant of `add` (with pictures, speech and text on screen),
   `reencode`, `compact`, `remove`, judging and correcting what was heard. What it had reported must be there, bit for
   bit; what it had not is there wholly or not at all; then it goes on.
2. Disk errors: a write, flush, rename, deletion or new folder inside the library fails (ENOSPC, EIO) in the system call
   itself, by strace, SQLite's included. The command says so in a sentence; the library is as before, or as after it.
3. Flipped bits: one bit of one segment, then `verify`, an `add` that joins segments, `compact`, and `verify --repair`
   with `retry`, each on a copy of its own. Wrong vectors are never called sound.
4. Damaged files: a segment or the catalogue is cut, zeroed, emptied or scribbled over. One sentence, no traceback.

Ends with exit code 1 if anything was lost or hidden. It takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attack_library as target
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import text_table
from momentseek.library.segments import SEGMENT_SUFFIX
from momentseek.library.store import LibraryStore

CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "mkdir", "ftruncate")
ERRORS = ("ENOSPC", "EIO")
Outcomes = Counter[tuple[str, str]]
"""How often something happened: (what was tried, what happened) → number."""
BAD = "LOST OR HIDDEN"


class Attack:
    """A library to attack, copies of it, and what happened to them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance, self.outcomes = folder, random.Random(seed), Outcomes()
        target.install_encoders()
        self.films = target.in_child(target.make_films, folder / "films")
        self.base = folder / "base"
        target.in_child(target.make_base, self.base, self.films)
        self.commands = target.commands(self.films)
        self.copies = 0

    def note(self, tried: str, happened: str) -> None:
        """Count what happened; what must not happen is shown at once."""
        self.outcomes[tried, happened] += 1
        if BAD in happened:
            print(f"{tried}: {happened}", file=sys.stderr)

    def copy(self) -> Path:
        """A new copy of the library."""
        self.copies += 1
        folder = self.folder / f"copy-{self.copies}"
        shutil.copytree(self.base, folder)
        return folder

    def kill(self, times: int) -> None:
        """Kill each command in turn at random instants."""
        plans = {}
        for name, steps in self.commands.items():
            begun = time.monotonic()
            plans[name] = steps, self.states(steps), time.monotonic() - begun
        done = 0
        while done < times:
            name = list(plans)[done % len(plans)]
            steps, states, seconds = plans[name]
            folder = self.copy()
            reported = _killed_after(folder, steps, self.chance.uniform(0, seconds))
            if reported is not None:  # else it was quicker
                done += 1
                self.note(f"SIGKILL during {name}", target.in_child(_after_a_stop, folder, steps, states, reported))
            shutil.rmtree(folder)

    def states(self, steps: Sequence[target.Step]) -> list[target.State]:
        """The state at first and after each step, when nothing goes wrong."""
        return target.in_child(target.states_of_steps, self.base, self.folder / "plain", steps)

    def fail_calls(self, times: int) -> None:
        """Let system calls inside the library fail, one in each run of a command."""
        if not times:
            return
        if shutil.which("strace") is None:
            self.note("disk errors", "not tried: strace is not installed")
            return
        runs = {name: (steps[:1], self.states(steps[:1])) for name, steps in self.commands.items()}
        places = [(name, *call) for name in runs for call in self._calls_of(name)]
        print(f"{len(places)} system calls can fail", file=sys.stderr)
        for name, call, number in self.chance.sample(places, min(times, len(places))):
            error = self.chance.choice(ERRORS)
            folder = self.copy()
            done = self._traced(name, folder, ["-e", f"inject={call}:error={error}:when={number}"])
            if "INJECTED" not in done.trace:
                happened = "the call did not come this time"
            elif "Traceback" in done.said:
                happened = f"{BAD}: a traceback\n{done.said}"
            else:
                steps, states = runs[name]
                told = "said in a sentence" if done.code == 2 else f"exit code {done.code}"
                after = target.in_child(_after_a_stop, folder, steps, states, int(done.code == 0))
                happened = f"{told}; {after}"
            self.note(f"{error} in {call}", happened)
            shutil.rmtree(folder)

    def _calls_of(self, name: str) -> list[tuple[str, int]]:
        """The calls that a command makes on files of the library: (call, its number among calls of this kind)."""
        folder = self.copy()
        seen: Counter[str] = Counter()
        found = []
        for line in self._traced(name, folder, []).trace.splitlines():
            match = re.match(r"\d+ +(\w+)\((.*)", line)
            if match and match[1] in CALLS:
                seen[match[1]] += 1
                if str(folder) in match[2] and "/lock" not in match[2]:
                    found.append((match[1], seen[match[1]]))
        shutil.rmtree(folder)
        return found

    def _traced(self, name: str, folder: Path, options: Sequence[str]) -> TracedRun:
        trace = self.folder / "trace.txt"
        words = ["strace", "-f", "--seccomp-bpf", "-y", "-s", "0", "-o", str(trace), "-e", f"trace={','.join(CALLS)}"]
        own = [sys.executable, __file__, "--step", name, str(folder), str(self.folder / "films")]
        done = subprocess.run([*words, *options, *own], capture_output=True, text=True, check=False)
        return TracedRun(done.returncode, done.stderr, trace.read_text(errors="replace"))

    def flip(self, times: int) -> None:
        """Flip one bit of a segment and let each command meet it."""
        want = self.states([])[0][0]
        ways = {"verify": _verify, "add": _add, "compact": _compact, "repair": _repair}
        for _ in range(times):
            files = sorted((self.base / "segments").glob(f"*{SEGMENT_SUFFIX}"))
            path = self.chance.choice(files)
            byte, bit = self.chance.randrange(path.stat().st_size), self.chance.randrange(8)
            for name, way in ways.items():
                folder = self.copy()
                data = bytearray((folder / "segments" / path.name).read_bytes())
                data[byte] ^= 1 << bit
                (folder / "segments" / path.name).write_bytes(data)
                self.note(
                    f"one flipped bit, then {name}", target.in_child(lambda w=way, f=folder: w(f, want, self.films))
                )  # type: ignore[misc]
                shutil.rmtree(folder)

    def mutate(self, times: int) -> None:
        """Damage whole stretches of segments and of the catalogue."""
        for number in range(times):
            folder = self.copy()
            files = sorted((folder / "segments").glob(f"*{SEGMENT_SUFFIX}"))
            kind = "a segment" if number % 2 else "the catalogue"
            path = self.chance.choice(files) if number % 2 else folder / "catalog.sqlite"
            how = _damage(path, self.chance)
            self.note(f"{kind} {how}", target.in_child(_use, folder, self.films))
            shutil.rmtree(folder)


class TracedRun:
    """A command that ran under strace."""

    def __init__(self, code: int, said: str, trace: str) -> None:
        self.code, self.said, self.trace = code, said, trace


def _killed_after(folder: Path, steps: Sequence[target.Step], seconds: float) -> int | None:
    """Kill a process after so many seconds; how many steps it had reported, or None if it had ended before."""
    here, there = os.pipe()
    if not (child := os.fork()):
        os.close(here)
        with target.open_library(folder) as library:
            os.write(there, b"o")
            for step in steps:
                step(library)
                os.write(there, b"s")
        os._exit(0)
    os.close(there)
    os.read(here, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(here, "rb") as file:
        reported = len(file.read())
    return reported if os.WIFSIGNALED(status) else None


def _after_a_stop(folder: Path, steps: Sequence[target.Step], states: Sequence[target.State], reported: int) -> str:
    """What is left after a stop: as reported, and the rest can be done."""
    with target.open_library(folder) as library:
        if library.verify().problems:
            return f"{BAD}: {library.verify().problems[0]}"
        found = target.state_of(library)
        allowed = range(reported, min(reported + 2, len(states)))
        at = next((at for at in allowed if found == states[at]), None)
        if at is None and reported + 1 < len(states) and target.is_on_the_way(found, states[reported + 1]):
            at = reported  # its pictures are there, and the step goes on with the rest
        if at is None:
            return f"{BAD}: neither the state before nor after"
        for step in steps[at:]:
            step(library)
        if target.state_of(library) != states[-1] or not library.verify().clean:
            return f"{BAD}: another end than without it"
    return "nothing lost, ends as if nothing had been"


def _hidden(library: LibraryStore, want: dict[str, object]) -> str:
    """Whether wrong vectors are hidden: a library that verifies must hold exactly what was written."""
    try:
        found = target.state_of(library)[0]
    except MomentseekError:  # a segment that cannot be opened is not hidden
        found = {}
    wrong = [name for name in want if found.get(name) != want[name]]
    clean = library.verify().clean
    return f"{BAD}: {wrong}" if wrong and clean else ""


def _verify(folder: Path, want: dict[str, object], films: Sequence[Path]) -> str:
    with target.open_library(folder) as library:
        return BAD if library.verify().clean else "found"


def _add(folder: Path, want: dict[str, object], films: Sequence[Path]) -> str:
    with target.open_library(folder) as library:
        report = library.add(films[3 : target.FILMS])
        if report.added != target.FILMS - 3:
            return f"{BAD}: {report}"
        if hidden := _hidden(library, want):
            return hidden
        named = any("run: momentseek verify" in note for note in report.notes)
        return "new videos added, damage named" if named else "new videos added, damaged segment not touched"


def _compact(folder: Path, want: dict[str, object], films: Sequence[Path]) -> str:
    with target.open_library(folder) as library:
        try:
            library.compact()
        except MomentseekError as e:
            return _hidden(library, want) or ("refused, damage named" if "verify --repair" in str(e) else BAD)
        return _hidden(library, want) or "damage was to what is dropped, or in a segment not touched"


def _repair(folder: Path, want: dict[str, object], films: Sequence[Path]) -> str:
    with target.open_library(folder) as library:
        if not library.verify(repair=True).clean:
            return f"{BAD}: not repaired"
        found = target.state_of(library)[0]
        if any(found[name] != want[name] for name in found):
            return f"{BAD}: damaged rows kept"
        lost = len(want) - len(found)
        library.retry()
        if target.state_of(library)[0] != want:
            return f"{BAD}: not as before after retry"
        return f"sound videos kept, {lost} encoded again, all as before" if lost else "all videos kept, as before"


def _damage(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    how = chance.choice(["cut short", "zeroed in part", "scribbled over", "emptied"])
    at = chance.randrange(len(data))
    if how == "cut short":
        del data[at:]
    elif how == "zeroed in part":
        data[at : at + 512] = bytes(min(512, len(data) - at))
    elif how == "scribbled over":
        data[at : at + 64] = chance.randbytes(min(64, len(data) - at))
    else:
        data.clear()
    path.write_bytes(data)
    return how


def _use(folder: Path, films: Sequence[Path]) -> str:
    """Verify, repair, add and compact a damaged library: sentences are fine, anything else is not."""
    said: list[str] = []
    works: list[Callable[[LibraryStore], object]] = [
        lambda library: library.verify(),
        lambda library: library.verify(repair=True),
        lambda library: library.retry(),
        lambda library: library.add(films[3:4]),
        lambda library: library.compact(),
    ]
    for work in works:
        try:
            with target.open_library(folder) as library:
                work(library)
        except MomentseekError as e:
            said.append(str(e))
        except Exception as e:
            return f"{BAD}: {type(e).__name__}: {e}"
    try:
        with target.open_library(folder) as library:
            return "mended" if library.verify().clean else "still said to be damaged"
    except MomentseekError:
        return "refused in a sentence"


def run_step(name: str, folder: Path, films: Path) -> None:
    """Run the first step of a command, as the command line would: a sentence and exit code 2 if it is refused."""
    target.install_encoders()
    step = target.commands([films / f"{n}.mp4" for n in range(target.FILMS + 1)])[name][0]
    try:
        with target.open_library(folder) as library:
            step(library)
    except MomentseekError as e:
        print(f"Error: {e}", file=sys.stderr)
        sys.exit(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--errors", type=int, default=80)
    parser.add_argument("--flips", type=int, default=120)
    parser.add_argument("--mutants", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="kill and fail only these commands")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        run_step(given.step[0], Path(given.step[1]), Path(given.step[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        attack = Attack(Path(folder), given.seed)
        if given.only:
            attack.commands = {name: attack.commands[name] for name in given.only}
        attack.kill(given.kills)
        attack.fail_calls(given.errors)
        attack.flip(given.flips)
        attack.mutate(given.mutants)
    rows = [[tried, happened, str(n)] for (tried, happened), n in sorted(attack.outcomes.items())]
    print(text_table(["tried", "what happened", "times"], rows))
    sys.exit(any(BAD in happened for _, happened in attack.outcomes))


if __name__ == "__main__":
    main()
