"""Starts ``momentseek`` processes that have everything imported already: forks of one that waits for requests.

A process that serves spends a second of the processor on imports before it does anything, one that trains three. What
is started here is a process of its own in every other respect, with its own arguments, environment, folder, pipes and
signals. Workers that were forked (forked_workers.py) share the one that waits, which was forked like them.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

LIGHT = Path(__file__).parent.parent / "library" / "light.py"
IMPORTS = (
    "av",
    "momentseek.api.library",
    "momentseek.cli.add",
    "momentseek.cli.serve",
    "momentseek.library.ingest.add",
    "momentseek.media.decode",
    "momentseek.search.engine",
    "momentseek.server.app",
    "momentseek.server.app",
    "momentseek.server.process",
    "uvicorn",
)


class WarmProcess:
    """What ``subprocess.Popen`` would be of such a process."""

    def __init__(self, forks: WarmForks, pid: int, stdout: IO[str], stderr: IO[str]) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.returncode: int | None = None
        self._forks = forks

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended."""
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it still prints, until it ends."""
        said: dict[str, str] = {}

        def read(name: str, stream: IO[str]) -> None:
            said[name] = "" if stream.closed else stream.read()
            stream.close()

        readers = [threading.Thread(target=read, args=pair) for pair in (("out", self.stdout), ("err", self.stderr))]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return said["out"], said["err"]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self.returncode = self._forks.exit_code(self.pid, timeout)
        return self.returncode


_SHARED: list[str] = []
"""Where the process that workers share listens, if there is one."""


class WarmForks:
    """The process that has everything imported, from here."""

    def __init__(self) -> None:
        if _SHARED:
            self.process = None
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(_SHARED[0])
        else:
            self._socket, there = socket.socketpair()
            command = [sys.executable, __file__, str(there.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[there.fileno()])
            there.close()
        self._lines = self._socket.makefile("r")
        self._ended: dict[int, int] = {}

    def start(
        self, *arguments: object, light: bool = False, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> WarmProcess:
        """``momentseek ARGUMENTS``, if asked for with encoders that cost nothing."""
        words = [str(LIGHT) if light else "momentseek", *map(str, arguments)]
        request = {"words": words, "environment": dict(env or os.environ), "folder": str(cwd or Path.cwd())}
        out, err = os.pipe(), os.pipe()
        data = json.dumps(request).encode()
        self._socket.sendall(len(data).to_bytes(4, "big"))
        socket.send_fds(self._socket, [b"!"], [out[1], err[1]])
        self._socket.sendall(data)
        os.close(out[1])
        os.close(err[1])
        while (message := json.loads(self._lines.readline()))["ended"]:
            self._ended[message["pid"]] = message["code"]
        return WarmProcess(self, message["pid"], os.fdopen(out[0]), os.fdopen(err[0]))

    def exit_code(self, pid: int, timeout: float | None) -> int | None:
        """The exit code of a process that was started; nothing if it has not ended in time."""
        while pid not in self._ended:
            if not select.select([self._socket], [], [], timeout)[0]:
                return None
            message = json.loads(self._lines.readline())
            self._ended[message["pid"]] = message["code"]
        return self._ended.pop(pid)

    def close(self) -> None:
        """End it; what it started goes on."""
        self._lines.close()
        self._socket.close()
        if self.process is not None:
            self.process.wait()


def share_forks() -> None:
    """Fork a process that waits for the requests of all that are forked later.

    It has what this process has imported, and ends with it and them.
    """
    listener = socket.socket(socket.AF_UNIX)
    address = f"\0momentseek-tests-{os.getpid()}"  # no file: paths of sockets may not be long
    listener.bind(address)
    listener.listen()
    alive, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        _wait_for_requests(listener=listener, alive=alive)
    listener.close()
    os.close(alive)
    os.set_inheritable(held, False)
    _SHARED.append(address)


class _Forking:
    """Forks for requests, and tells whoever asked when what was forked has ended."""

    def __init__(self, files: Sequence[int]) -> None:
        self.connections: list[socket.socket] = []
        self.askers: dict[int, socket.socket] = {}
        self.ended, self.wakes = os.pipe()
        self.files = [*files, self.ended, self.wakes]
        os.set_blocking(self.wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakes, warn_on_full_buffer=False)

    def fork(self, connection: socket.socket) -> list[str] | None:
        """Take a request; in the forked process alone it returns what that is to run."""
        head = connection.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            self.connections.remove(connection)
            connection.close()
            return None
        _, files, _, _ = socket.recv_fds(connection, 1, 2)
        request = json.loads(connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in self.connections:
                other.close()
            return _become(request, files, self.files)
        for file in files:
            os.close(file)
        self.askers[child] = connection
        _tell(connection, ended=False, pid=child)
        return None

    def tell_ended(self) -> None:
        os.read(self.ended, 1000)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            asker = self.askers.pop(pid, None)
            if asker is not None and asker in self.connections:
                _tell(asker, ended=True, pid=pid, code=os.waitstatus_to_exitcode(status))


def _tell(connection: socket.socket, **message: Any) -> None:
    with suppress(ConnectionError):  # nobody waits for it any more
        connection.sendall(json.dumps(message).encode() + b"\n")


def _become(request: dict[str, Any], files: Sequence[int], unused: Sequence[int]) -> list[str]:
    """Take on the environment, folder and pipes of a request."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    for file in unused:
        os.close(file)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(line_buffering=at_once)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr.reconfigure(line_buffering=True)
    words: list[str] = request["words"]
    return words


def _wait_for_requests(
    connection: socket.socket | None = None, listener: socket.socket | None = None, alive: int | None = None
) -> NoReturn:
    """Serve one connection until it is closed, or all that come to a listener until nobody holds ``alive`` open."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, which is for the tests
    atexit._clear()
    for name in IMPORTS:
        import_module(name)
    gc.collect()
    gc.freeze()
    forking = _Forking([] if listener is None or alive is None else [listener.fileno(), alive])
    if connection is not None:
        forking.connections.append(connection)
    words = None
    while words is None and (listener or forking.connections):
        sources = [*forking.connections, forking.ended]
        ready, _, _ = select.select(sources if listener is None else [*sources, listener, alive], [], [])
        if alive is not None and alive in ready:
            break
        if forking.ended in ready:
            forking.tell_ended()
        if listener is not None and listener in ready:
            forking.connections.append(listener.accept()[0])
        for some in [some for some in ready if some in forking.connections]:
            words = words or forking.fork(some)
    if words is None:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run(words)


def _run(words: Sequence[str]) -> NoReturn:
    """What a process of its own would do, to its end."""
    sys.argv = list(words)
    code: object = 0
    try:
        if words[0] == "momentseek":
            runpy.run_module("momentseek", run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as e:
        code = e.code
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _wait_for_requests(socket.socket(fileno=int(sys.argv[1])))
