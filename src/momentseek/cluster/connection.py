"""Join a Ray cluster: the one at an address, the one on this machine, or a new local one."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from momentseek import __version__
from momentseek.core.errors import MomentseekError, optional_module, parameter

PRINT_DIGITS = 8
"""Number of digits of a print that are shown."""


class Release(NamedTuple):
    """A release of Momentseek, and the print of its sources."""

    version: str
    print: str

    def __str__(self) -> str:
        return self.version


def this_release() -> Release:
    """The release of Momentseek that is running here."""
    import momentseek

    return Release(__version__, source_print(Path(momentseek.__file__).parent))


@cache
def source_print(folder: Path) -> str:
    """A hash of the Python files in a folder, by their names and bytes; line ends do not count."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
        digest.update(b"\0")
    return digest.hexdigest()


def difference(there: Release, here: Release) -> str | None:
    """How the Momentseek of a node differs from the one here, and what to do; None if it does not.

    >>> difference(Release("1.0", "ab"), Release("1.0", "ab"))
    >>> difference(Release("1.0", "ab"), Release("1.1", "cd"))
    'has Momentseek 1.0, and this machine 1.1; install the same release on all'
    >>> difference(Release("1.1", "ab"), Release("1.1", "cd"))
    'has other sources of Momentseek 1.1 (print ab) than this machine (cd); install the same on all'
    """
    if there == here:
        return None
    if there.version != here.version:
        return f"has Momentseek {there.version}, and this machine {here.version}; install the same release on all"
    prints = (one.print[:PRINT_DIGITS] for one in (there, here))
    return "has other sources of Momentseek {} (print {}) than this machine ({}); install the same on all".format(
        here.version, *prints
    )


CONNECT_SECONDS = 5.0
"""How long a cluster's address may take to accept a connection."""
LOCAL_STORE_BYTES = 256 << 20
"""Memory for objects of a cluster that is started locally; vectors are not stored there."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that has been joined."""

    ray: Any

    def actor(self, kind: type, **options: Any) -> Any:
        """A class whose objects live on the cluster, with Ray's own options."""
        return self.ray.remote(**options)(kind)

    def task(self, function: Callable[..., Any], **options: Any) -> Any:
        """A function that runs on one processor of the cluster, with Ray's own options."""
        return self.ray.remote(num_cpus=1, **options)(function)

    def processors(self) -> int:
        """Number of processors of all nodes that are alive now, at least one."""
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in self.alive_nodes())))

    def alive_nodes(self) -> list[dict[str, Any]]:
        """What Ray says of the nodes that are alive."""
        return [node for node in self.ray.nodes() if node["Alive"]]


INSECURE_VARIABLE = "MOMENTSEEK_INSECURE_CLUSTER"
"""If set to 1, commands may join a cluster that does not require a token."""


@contextmanager
def join_cluster(address: str, *, insecure: bool = False) -> Iterator[Cluster]:
    """Join the cluster at an address, and leave it at the end of the ``with``.

    The address is ``ray://HOST:10001``, ``HOST:6379``, ``auto`` for the cluster on this machine, or ``local`` for one
    that is started here and ends with the work. Every node must have this release of Momentseek; Ray itself refuses
    other releases of Ray and of Python. A cluster that requires no token runs the code of anybody who reaches its
    ports, and is refused unless ``insecure`` is set.
    """
    # usage statistics start a subprocess per worker, which slows down the start
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = optional_module("ray", "cluster")
    if ray.is_initialized():
        raise MomentseekError("this process is already in a cluster; leave it first")
    _join(ray, address)
    try:
        found = Cluster(ray)
        insecure = insecure or address == "local" or os.environ.get(INSECURE_VARIABLE) == "1"
        _check_nodes(found, address, insecure)
        yield found
    finally:
        ray.shutdown()


def _join(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        try:
            ray.init(address="local", include_dashboard=False, object_store_memory=LOCAL_STORE_BYTES, **quiet)
        except Exception as e:  # Ray has no class of its own for a node that does not come up
            ray.shutdown()
            said = " ".join(str(e).split())[:300]
            raise MomentseekError(f"no cluster could be started on this machine ({said}); try again") from None
        return
    if address != "auto":
        check_address(address)
    try:
        ray.init(address=address, **quiet)
    except ray.exceptions.AuthenticationError:
        raise _wrong_token(address) from None
    except (ConnectionError, TimeoutError) as e:
        if "uthenticat" in str(e.__cause__):  # Ray puts the reason into the text of another error
            raise _wrong_token(address) from None
        raise _no_cluster(address) from None
    except (RuntimeError, ValueError) as e:
        if "ersion mismatch" in str(e):
            raise MomentseekError(f"{address}: {release_sentence(str(e))}") from None
        raise _no_cluster(address) from None


def release_sentence(said: str) -> str:
    """Ray's message about a cluster with another release of Ray or Python, as one sentence.

    >>> release_sentence("Version mismatch: The cluster was started with:\\n  Ray: 2.49.2\\n  Python: 3.11.7\\n"
    ...     "This process on node 10.0.0.2 was started with:\\n  Ray: 2.60.0\\n  Python: 3.11.7")
    'the cluster has Ray 2.49.2 with Python 3.11.7, and this machine Ray 2.60.0 with Python 3.11.7; use the same on all'
    """
    rays, pythons = (re.findall(rf"{name}: *(\S+)", said) for name in ("Ray", "Python"))
    if len(rays) != 2 or len(pythons) != 2:
        return f"the cluster runs another release of Ray or Python ({' '.join(said.split())[:300]})"
    there, here = (f"Ray {ray} with Python {python}" for ray, python in zip(rays, pythons, strict=True))
    return f"the cluster has {there}, and this machine {here}; use the same on all"


def check_address(address: str) -> None:
    """Refuse an address at which nothing listens, at once instead of after Ray's timeout of half a minute."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.scheme not in ("", "ray"):
        raise MomentseekError(
            f"{address}: is not the address of a cluster; use ray://HOST:10001, HOST:6379, auto or local "
            f"({parameter('on')})"
        )
    if not speaks_grpc(host, port, CONNECT_SECONDS):
        raise _no_cluster(address)


GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The connection preface of an HTTP/2 client, with empty settings."""


def speaks_grpc(host: str, port: int, seconds: float) -> bool:
    """Whether a server answers a greeting in time.

    The system accepts connections even for a process that hangs, so a connection alone means little. Any reaction
    counts as an answer: a server that requires TLS closes the connection.
    """
    try:
        with socket.create_connection((host, port), seconds) as connection:
            connection.sendall(GREETING)
            connection.recv(1)
    except ConnectionResetError:
        return True
    except OSError:
        return False
    return True


def _no_cluster(address: str) -> MomentseekError:
    return MomentseekError(
        f"{address}: no Ray cluster answers there; start one with: ray start --head, or use a local one (on=local)"
    )


def _wrong_token(address: str) -> MomentseekError:
    return MomentseekError(
        f"{address}: the cluster asks for another token than this machine has; give the head's to all machines "
        "(RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH=FILE, before ray start too)"
    )


def node_facts() -> tuple[Release, bool]:
    """The release of Momentseek on this node, and whether its Ray requires a token."""
    raylet = importlib.import_module("ray._raylet")
    return this_release(), raylet.get_authentication_mode() != raylet.AuthenticationMode.DISABLED


def _check_nodes(cluster: Cluster, address: str, insecure: bool) -> None:
    """Refuse a cluster with a node that has no Momentseek or another release, or that requires no token."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = cluster.ray.remote(num_cpus=0, max_retries=0)(node_facts)
    nodes, here = cluster.alive_nodes(), this_release()
    answers = [
        asked.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
        for node in nodes
    ]
    for node, answer in zip(nodes, answers, strict=True):
        try:
            found, secure = cluster.ray.get(answer)
        except Exception as e:
            # what Ray raises where the function cannot even be loaded
            said = str(e).strip().splitlines()[-1][:200]
            raise MomentseekError(
                f"{node['NodeManagerAddress']}: this node has no Momentseek that answers ({said}); install "
                f"momentseek[cluster] {__version__} there"
            ) from None
        if (differs := difference(found, here)) is not None:
            raise MomentseekError(f"{node['NodeManagerAddress']}: this node {differs}")
        if not (secure or insecure):
            raise MomentseekError(
                f"{address}: the cluster asks nobody for a token, so whoever reaches its ports can run code on it; "
                f"start it with RAY_AUTH_MODE=token, or allow it where only you reach it ({parameter('insecure')})"
            )
