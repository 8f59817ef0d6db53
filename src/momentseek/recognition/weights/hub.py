"""Files from a model hub: download one over HTTPS, resumed where it stopped, and check it against its lock ever after.

What has arrived waits in ``FILE.part``, with the server's name for that version (its ETag) in ``FILE.part.etag``; the
rest is asked for with ``Range`` and ``If-Range``, so that halves of two versions are never put together. A file whose
hash the catalog knows must be that one from the first; of the others the first download is trusted. The lock lies next
to the model's folder, not in it, so that it outlives a deleted model: a second download must give the same bytes.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from momentseek.core.atomic import drop_temporary, flush_folder, write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.recognition.weights.catalog import HubModel
from momentseek.recognition.weights.files import hashes, models_folder, sha256

TIMEOUT_SECONDS = 30.0
"""Seconds without a byte after which a connection counts as lost."""
MAX_TRIES = 4
CHUNK_BYTES = 1 << 18


class MissingFileError(MomentseekError):
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
    ``advance`` is told of bytes as they arrive (those of an earlier attempt at once). Interrupted, the part stays.
    """
    _check_scheme(url)
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(part) as file:
            _fetch_all(url, file, part, limit, advance)
            os.fsync(file.fileno())
        found = sha256(part)
        if digest is not None and found != digest:
            _forget(part)
            raise MomentseekError(
                f"{url}: {otherwise}, so it was thrown away; try another source ({parameter('source')})"
            )
        part.replace(target)
        flush_folder(target.parent)
        drop_temporary(_etag(part))
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    return found


def _fetch_all(url: str, file: FileIO, part: Path, limit: int, advance: Callable[[int], None]) -> None:
    advance(file.seek(0, os.SEEK_END))
    for attempt in range(MAX_TRIES):
        try:
            if _fetch(url, file, part, limit, advance):
                return
        except urllib.error.HTTPError as e:
            with e:
                if e.code == 416:  # there is nothing beyond what we have, or that is too much
                    if e.headers.get("Content-Range") == f"bytes */{file.tell()}":
                        return
                    _begin_again(file, part, advance)
                elif e.code in (404, 410):
                    raise MissingFileError(f"{url}: the server says {e.code} {e.reason}") from None
                elif e.code < 500 and e.code != 429:
                    raise MomentseekError(
                        f"{url}: the server says {e.code} {e.reason}; try another source ({parameter('source')})"
                    ) from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError):
            pass
        if attempt < MAX_TRIES - 1:
            time.sleep(0.2 * 4**attempt)
    raise MomentseekError(
        f"{url}: the connection is lost or there is none ({file.tell():,} bytes have arrived); "
        "the same command continues from there; on a machine without network, name a folder with the files "
        f"({parameter('source', 'FOLDER')})"
    )


def _fetch(url: str, file: FileIO, part: Path, limit: int, advance: Callable[[int], None]) -> bool:
    """One connection; whether the file is complete after it."""
    have = file.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "momentseek", "Accept-Encoding": "identity"})
    version = _read_etag(part)
    if have and version:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    with _open(request) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if not goes_on:
            _begin_again(file, part, advance)
            have = 0
            _etag(part).write_text(answer.headers.get("ETag") or "", "utf-8")
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        _check_size(url, total or have, limit)
        while piece := answer.read(CHUNK_BYTES):
            _write(file, piece)
            have += len(piece)
            _check_size(url, have, limit)
            advance(len(piece))
    return total is None or have == total


def _begin_again(file: FileIO, part: Path, advance: Callable[[int], None]) -> None:
    if have := file.tell():
        advance(-have)
        file.truncate(0)
        file.seek(0)
    drop_temporary(_etag(part))


def _write(file: FileIO, piece: bytes) -> None:
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as e:  # not to be taken for a lost connection
        raise MomentseekError(
            f"{file.name!s}: cannot be written ({e.strerror}); make room, and the same command continues from there"
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
        raise MomentseekError(
            f"{url}: only https addresses are downloaded from; give another source ({parameter('source')})"
        )


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """As usual, but never from https to something less."""
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def _open(request: urllib.request.Request) -> Iterator[Any]:
    with urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT_SECONDS) as answer:
        yield answer


@contextmanager
def _alone(part: Path) -> Iterator[FileIO]:
    """The part, opened for adding to it, while no other process does."""
    with part.open("ab+", buffering=0) as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows: two downloads of one file at once are not noticed
            pass
        except BlockingIOError:
            raise MomentseekError(f"{part}: another process is downloading this; wait for it") from None
        yield file


def _etag(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _read_etag(part: Path) -> str:
    """The version that the part is of; weak ones (``W/…``) do not promise the same bytes."""
    with suppress(OSError, UnicodeDecodeError):
        version = _etag(part).read_text("utf-8")
        if version.startswith('"') and version.isprintable():
            return version
    return ""


def _forget(part: Path) -> None:
    drop_temporary(part)
    drop_temporary(_etag(part))


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
            f"{path}: is damaged; delete it and the folder {name} beside it, then get the model again"
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
