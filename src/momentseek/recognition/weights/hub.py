"""Download files from a model hub over HTTPS, resume interrupted downloads, and check files against a lock.

``huggingface_hub`` makes the requests: timeouts, retries, proxies, ``HF_ENDPOINT``, ``HF_HUB_OFFLINE``. A partial
download is in ``FILE.VERSION.part``, where the version is the server's ETag. The hub's own download function would
discard it when interrupted, does not support mirrors with another layout, and does not limit the size.

A file must have the catalog's hash if there is one; otherwise the first download is trusted. The lock is next to the
model's folder, not in it, so that it outlives a deleted model: a second download must give the same bytes.
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
"""Timeout for a server's response."""


class UnreachableError(MomentseekError):
    """The server does not send the file, or cannot be reached."""


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
    """Download ``url`` to ``target`` and return its SHA-256, which must be ``digest`` if that is known.

    A file with another hash is deleted, and ``otherwise`` describes it in the error. No file may exceed ``limit``
    bytes. ``advance`` is called with the number of new bytes (those of an earlier attempt at once). If interrupted, the
    partial file stays.
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
    """Download the missing rest of a file, and return the complete partial file.

    If the server names no version, a download is resumed only if the digest is known, which then decides.
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
        _guard_session(hub)  # the client makes a new session after a failed connection
        with _connection(hub, url, file):
            http_get(url, file, resume_size=file.tell(), headers=headers, expected_size=size)
        os.fsync(file.fileno())
    return part


def _guard_session(hub: Any) -> None:
    """Check every request of the hub's client, also after redirects."""
    session = hub.get_session()
    if _check_request not in session.event_hooks["request"]:
        session.event_hooks = {**session.event_hooks, "request": [*session.event_hooks["request"], _check_request]}


def _size_and_version(hub: Any, url: str) -> tuple[int | None, str | None]:
    """Return a file's size and ETag, with retries; both are None if the server only sends whole files."""
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
    """Return the path of the partial download of a file's version."""
    digits = hashlib.sha256((version or "").encode()).hexdigest()[:12]
    return target.with_name(f"{target.name}.{digits}.part")


class _PartFile(FileIO):
    """A partial download, to which the hub's client writes at most ``limit`` bytes."""

    def __init__(self, path: Path, mode: str, url: str, limit: int, advance: Callable[[int], None]) -> None:
        super().__init__(path, mode)
        self.url, self.limit, self.advance = url, limit, advance
        self.reported = 0
        self.report()

    def report(self) -> None:
        """Report the bytes received since the last call; a negative number if the server started again."""
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
        except OSError as e:  # must not look like a lost connection
            raise MomentseekError(
                f"{self.name!s}: cannot be written ({e.strerror}); make room, and the same command continues from there"
            ) from None
        self.report()
        return len(data)


@contextmanager
def _connection(hub: Any, url: str, part: _PartFile | None = None) -> Iterator[None]:
    """Translate connection errors into plain sentences."""
    try:
        yield
    except MomentseekError:
        raise
    except hub.errors.HfHubHTTPError as e:
        said = f"{url}: the server says {e.response.status_code} {e.response.reason_phrase}"
        if e.response.status_code in (404, 410):
            raise MissingFileError(said) from None
        raise UnreachableError(f"{said}; try another source ({parameter('source')})") from None
    except Exception:  # each version of the client has other classes for a lost connection
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
    """Refuse requests that leave https, including redirects."""
    _check_scheme(str(request.url))


@contextmanager
def _only_process(target: Path) -> Iterator[None]:
    """Refuse to download a file that another process is downloading."""
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
    """Return the folder of a downloaded model."""
    return models_folder() / name


def lock_file(name: str) -> Path:
    """Return the file with a model's recorded hashes."""
    return models_folder() / f"{name}.lock.json"


def read_lock(name: str) -> dict[str, str]:
    """Return path → SHA-256 for the files downloaded so far."""
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
    """Record the hashes and the source of downloaded files."""

    write_bytes(lock_file(name), json.dumps({"source": source, "sha256": dict(digests)}, indent=1).encode())


def check_model(model: HubModel, *, fresh: bool = False) -> Path:
    """Return the model's folder, after checking that all files are present and have the right hashes."""
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
    """Return what a wrong hash means: not the published file, or not the file downloaded first."""
    if file in model.hashes:
        return "is not the published file (its SHA-256 differs)"
    return "has changed since it was downloaded (its SHA-256 differs)"
