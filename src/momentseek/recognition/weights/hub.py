"""Files from a model hub: download one over HTTPS, resumed where it stopped, and check it against its lock ever after.

``huggingface_hub`` does the talking: time limits, retries, proxies, ``HF_ENDPOINT``, ``HF_HUB_OFFLINE``. What has
arrived waits in ``FILE.VERSION.part``, where the version is the server's (its ETag); the hub's own download would throw
it away when it is interrupted, takes no files from mirrors that are laid out otherwise, and does not bound their size.

A file whose hash the catalog knows must be that one from the first; of the others the first download is trusted. The
lock lies next to the model's folder, not in it, so that it outlives a deleted model: a second download must give the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from momentseek.core.atomic import drop_temporary, flush_folder, write_bytes
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.recognition.weights.catalog import HubModel
from momentseek.recognition.weights.files import hashes, models_folder, sha256

TIMEOUT_SECONDS = 30.0
"""Seconds that a server may take to say what it has."""


class UnreachableError(MomentseekError):
    """The server does not give the file, or there is no way to the server."""


class MissingFileError(UnreachableError):
    """The server has no file at that address."""


def download(
    url: str,
    target: Path,
    *,
    digest: str | None,
    limit: int,
    otherwise: str = "is not the file that was asked for (its SHA-256 differs)",
    advance: Callable[[int], None] = lambda _: None,
) -> str:
    """Fetch ``url`` into ``target`` and give its SHA-256, which must be ``digest`` if that is known.

    ``otherwise`` says what a file with another hash is; it is thrown away. No file is larger than ``limit`` bytes.
    ``advance`` is called with the bytes that arrive (those of an earlier attempt at once). Interrupted, the part stays.
    """
    _check_scheme(url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_process(target):
            part = _fetch(url, target, digest, limit, advance)
            found = sha256(part)
            if digest is not None and found != digest:
                drop_temporary(part)
                raise MomentseekError(
                    f"{url}: {otherwise}, so it was thrown away; try another source ({parameter('source')})"
                )
            part.replace(target)
            flush_folder(target.parent)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    return found


def _fetch(url: str, target: Path, digest: str | None, limit: int, advance: Callable[[int], None]) -> Path:
    """Fetch what is missing of a file, and give the part that is whole now.

    A server that names no version is asked for the rest all the same if the digest is known, which then decides.
    """
    hub = optional_module("huggingface_hub", "search")
    http_get = optional_module("huggingface_hub.file_download", "search").http_get
    hub.utils.disable_progress_bars("huggingface_hub.http_get")
    _guard_session(hub)
    with _connection(hub, url):
        size, version = _size_and_version(hub, url)
    if size is not None:
        _check_size(url, size, limit)
    resumable = version or (digest if size is not None else None)
    part = part_file(target, resumable)
    if size is not None and part.exists() and part.stat().st_size > size:
        drop_temporary(part)
    with _PartFile(part, "ab+" if resumable else "wb+", url, limit, advance) as file:
        headers = {"User-Agent": "momentseek", "Accept-Encoding": "identity"}
        headers |= {"If-Range": f'"{version}"'} if version else {}
        _guard_session(hub)  # the client makes a new one after a connection that failed
        with _connection(hub, url, file):
            http_get(url, file, resume_size=file.tell(), headers=headers, expected_size=size)
        os.fsync(file.fileno())
    return part


def _guard_session(hub: Any) -> None:
    """Have every request of the hub's client checked, those that follow a redirect too."""
    session = hub.get_session()
    if _check_request not in session.event_hooks["request"]:
        session.event_hooks = {**session.event_hooks, "request": [*session.event_hooks["request"], _check_request]}


def _size_and_version(hub: Any, url: str) -> tuple[int | None, str | None]:
    """A file's size and ETag; a server in trouble is asked again, one that only gives whole files says neither."""
    for again in (False, True):
        try:
            about = hub.get_hf_file_metadata(url, token=False, timeout=TIMEOUT_SECONDS, retry_on_errors=again)
        except hub.errors.HfHubHTTPError as e:
            if e.response.status_code in (405, 501):
                return None, None
            if again or e.response.status_code not in (429, 500, 502, 503, 504):
                raise
        else:
            return about.size, about.etag
    raise AssertionError


def part_file(target: Path, version: str | None) -> Path:
    """Where what has arrived of a version of a file waits."""
    digits = hashlib.sha256((version or "").encode()).hexdigest()[:12]
    return target.with_name(f"{target.name}.{digits}.part")


class _PartFile(FileIO):
    """The part of a file that has arrived, for the hub's client to write to; it never gets larger than ``limit``."""

    def __init__(self, path: Path, mode: str, url: str, limit: int, advance: Callable[[int], None]) -> None:
        super().__init__(path, mode)
        self.url, self.limit, self.advance = url, limit, advance
        self.reported = 0
        self.report()

    def report(self) -> None:
        """Say how many bytes have arrived since the last time; fewer than none where the server began again."""
        arrived = self.tell()
        self.advance(arrived - self.reported)
        self.reported = arrived

    def write(self, data: Any) -> int:
        """Write all of the data."""
        _check_size(self.url, self.tell() + len(data), self.limit)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[super().write(rest) :]
        except OSError as e:  # not to be taken for a lost connection
            raise MomentseekError(
                f"{self.name!s}: cannot be written ({e.strerror}); make room, and the same command continues from there"
            ) from None
        self.report()
        return len(data)


@contextmanager
def _connection(hub: Any, url: str, part: _PartFile | None = None) -> Iterator[None]:
    """Say in plain words why a server did not give a file."""
    try:
        yield
    except MomentseekError:
        raise
    except hub.errors.HfHubHTTPError as e:
        said = f"{url}: the server says {e.response.status_code} {e.response.reason_phrase}"
        if e.response.status_code in (404, 410):
            raise MissingFileError(said) from None
        raise UnreachableError(f"{said}; try another source ({parameter('source')})") from None
    except Exception:  # each version of the client has classes of its own for a lost connection
        arrived = 0 if part is None else part.tell()
        raise UnreachableError(
            f"{url}: the connection is lost or there is none ({arrived:,} bytes have arrived); "
            "the same command continues from there; on a machine without network, name a folder with the files "
            f"({parameter('source', 'FOLDER')})"
        ) from None


def _check_size(url: str, size: int, limit: int) -> None:
    if size > limit:
        raise MomentseekError(
            f"{url}: is larger than {limit:,} bytes, so it cannot be the model; try another source "
            f"({parameter('source')})"
        )


def _check_scheme(url: str) -> None:
    place = urllib.parse.urlsplit(url)
    local = place.hostname in ("127.0.0.1", "::1", "localhost")
    if place.scheme != "https" and not (place.scheme == "http" and local):
        raise UnreachableError(
            f"{url}: only https addresses are downloaded from; give another source ({parameter('source')})"
        )


def _check_request(request: Any) -> None:
    """Refuse what leads from https to something less, redirects included."""
    _check_scheme(str(request.url))


@contextmanager
def _only_process(target: Path) -> Iterator[None]:
    """Refuse to download a file while another process does."""
    filelock = optional_module("filelock", "search")
    path = target.with_name(f"{target.name}.lock")
    try:
        with filelock.FileLock(path, timeout=0):
            try:
                yield
            finally:
                drop_temporary(path)
    except filelock.Timeout:
        raise MomentseekError(f"{target}: another process is downloading this; wait for it") from None


def model_folder(name: str) -> Path:
    """Where a downloaded model is."""
    return models_folder() / name


def lock_file(name: str) -> Path:
    """Where its hashes are written down."""
    return models_folder() / f"{name}.lock.json"


def read_lock(name: str) -> dict[str, str]:
    """Path → SHA-256, for the files downloaded so far."""
    path = lock_file(name)
    try:
        found = json.loads(path.read_bytes())["sha256"]
        return {str(file): str(digest) for file, digest in found.items()}
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MomentseekError(
            f"{path}: is damaged; delete it and the folder {name} next to it, then get the model again"
        ) from None


def write_lock(name: str, source: str, digests: Mapping[str, str]) -> None:
    """Write down what was downloaded, and where it came from."""

    write_bytes(lock_file(name), json.dumps({"source": source, "sha256": dict(digests)}, indent=1).encode())


def check_model(model: HubModel, *, fresh: bool = False) -> Path:
    """The model's folder, if all its files are there and what they should be."""
    name = model.name
    folder, first = model_folder(name), read_lock(name)
    pinned = {**first, **model.hashes}
    if not first or not folder.is_dir():
        raise MomentseekError(f"the model {name} is not downloaded; get it with: momentseek models get {name}")
    for file in (*model.files, *first):
        if not (folder / file).is_file():
            raise MomentseekError(f"{folder / file}: is missing; get it with: momentseek models get {name}")
    found = hashes([folder / file for file in pinned], fresh=fresh)
    for file, digest in pinned.items():
        if found[folder / file] != digest:
            raise MomentseekError(
                f"{folder / file}: {what_differs(model, file)}; delete it and run: momentseek models get {name}"
            )
    return folder


def what_differs(model: HubModel, file: str) -> str:
    """What it means that a file's hash is another one: it is not the published file, or not the one that came first."""
    if file in model.hashes:
        return "is not the published file (its SHA-256 differs)"
    return "has changed since it was downloaded (its SHA-256 differs)"
