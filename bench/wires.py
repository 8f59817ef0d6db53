"""Machines that are network namespaces of this one, joined by a switch, so that a cable can be cut and joined again.

Needs to be root, and ``ip`` (iproute2). This machine has a cable to the switch too, at :data:`HERE`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from types import TracebackType

NET = "10.77.0"
HERE = f"{NET}.2"
"""This machine's own address on the switch."""


def can_make_namespaces() -> bool:
    """Whether this process may make network namespaces."""
    name = f"ms-try-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    except OSError:
        return False
    if made:
        subprocess.run(["ip", "netns", "delete", name], check=True)
    return made


class Wires:
    """A switch and some machines, for the time of a ``with``."""

    def __init__(self, machines: int, net: str = NET, first: int = 10, here: int = 2) -> None:
        self._prefix = f"ms{os.getpid()}"
        self._switch = f"{self._prefix}-switch"
        self._net, self._first, self.here = net, first, f"{net}.{here}"
        self.machines = list(range(machines))

    def __enter__(self) -> Wires:
        _run(f"netns add {self._switch}")
        _run(f"-n {self._switch} link add cables type bridge")
        _run(f"-n {self._switch} link set cables up")
        self._plug_in("here", f"{self._prefix}-here", self.here, None)
        for machine in self.machines:
            space = self._space(machine)
            _run(f"netns add {space}")
            _run(f"-n {space} link set lo up")
            self._plug_in(f"port{machine}", "eth0", self.address(machine), space)
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        for machine in self.machines:
            self.kill(machine)
        for space in (*map(self._space, self.machines), self._switch):  # cables go with what they are plugged into
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)

    def address(self, machine: int) -> str:
        """The address of a machine."""
        return f"{self._net}.{self._first + machine}"

    def inside(self, machine: int) -> list[str]:
        """The beginning of a command that runs on a machine."""
        return ["ip", "netns", "exec", self._space(machine)]

    def kill(self, machine: int) -> None:
        """Kill all processes of a machine."""
        found = subprocess.run(["ip", "netns", "pids", self._space(machine)], capture_output=True, text=True)
        for pid in map(int, found.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def cut(self, machine: int) -> None:
        """Cut a machine's cable: what is sent is lost, and nobody is told."""
        _run(f"-n {self._switch} link set port{machine} down")

    def join(self, machine: int) -> None:
        """Join a machine's cable again."""
        _run(f"-n {self._switch} link set port{machine} up")

    def _space(self, machine: int) -> str:
        return f"{self._prefix}-{machine}"

    def _plug_in(self, port: str, name: str, address: str, space: str | None) -> None:
        end = f"name {name}" if space is None else f"name {name} netns {space}"
        _run(f"link add {port} netns {self._switch} type veth peer {end}")
        _run(f"-n {self._switch} link set {port} master cables up")
        there = "" if space is None else f"-n {space} "
        _run(f"{there}addr add {address}/24 dev {name}")
        _run(f"{there}link set {name} up")


def _run(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)
