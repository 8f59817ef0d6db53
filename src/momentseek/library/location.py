"""The folder of a library: by its name, its path, the environment or the settings file."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from urllib.parse import quote, unquote

from momentseek.core.config import read_config
from momentseek.core.errors import MomentseekError, parameter
from momentseek.recognition.weights.files import cache_folder

DEFAULT_LIBRARY = "default"
LIBRARY_VARIABLE = "MOMENTSEEK_LIBRARY"
CACHE_VARIABLE = "MOMENTSEEK_CACHE"
SHARDS_FILE = "shards.json"
"""The file in the folder of a sharded library that lists its shards; each shard is a library in its own folder."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_QUOTED_SCHEME = quote("://", safe="")


def data_folder() -> Path:
    """The user's folder for libraries: ``$XDG_DATA_HOME/momentseek``, or ``~/.local/share/momentseek``."""
    root = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek"
    try:
        return Path.home() / ".local" / "share" / "momentseek"
    except RuntimeError:
        raise MomentseekError(f"there is no home folder for the library; name one ({parameter('library')})") from None


def library_folder(given: str | None = None) -> Path:
    """The folder of the library ``given``, or of ``$MOMENTSEEK_LIBRARY``, the settings file's library, or ``default``.

    A plain name is a folder in the user's data folder; anything with a separator is a path. For an address
    (``s3://bucket/lib``) it is the folder of the library's copy on this machine.

    >>> str(library_folder("./films"))
    'films'
    """
    name = given or os.environ.get(LIBRARY_VARIABLE) or read_config().get("library") or DEFAULT_LIBRARY
    if "://" in name:
        return copy_folder(name)
    separators = [s for s in (os.sep, os.altsep) if s]
    if any(s in name for s in separators) or name in (".", "..", "~"):
        return Path(name).expanduser()
    return data_folder() / name


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Whether a path is an address of files elsewhere.

    >>> is_remote("s3://bucket/films"), is_remote("films/a.mp4"), is_remote("C:\\\\films")
    (True, False, False)
    """
    return _SCHEME.match(os.fspath(place)) is not None


def split_address(address: str) -> tuple[str, str]:
    """The scheme of an address and what follows it; raises an error if it names no bucket or folder.

    >>> split_address("s3://bucket/films/")
    ('s3', 'bucket/films')
    """
    matched = _SCHEME.match(address)
    if matched is None or not address[matched.end() :].strip("/"):
        scheme = matched[1] if matched else "s3"
        raise MomentseekError(f"{address}: names no bucket or folder; give one, as in {scheme}://BUCKET/FOLDER")
    return matched[1], address[matched.end() :].rstrip("/")


def copies_folder() -> Path:
    """The folder for copies of remote libraries: ``$MOMENTSEEK_CACHE``, or ``libraries`` in the cache folder."""
    own = os.environ.get(CACHE_VARIABLE, "")
    return Path(own).expanduser().absolute() if own else cache_folder() / "libraries"


def copy_folder(address: str) -> Path:
    """The folder for the copy of the library at an address; it need not exist.

    >>> copy_folder("s3://bucket/lib").name
    's3%3A%2F%2Fbucket%2Flib'
    """
    scheme, path = split_address(address)
    return copies_folder() / quote(f"{scheme}://{path}", safe="")


def address_of(folder: Path) -> str | None:
    """The address of the library whose copy belongs in a folder; None for any other folder.

    >>> address_of(copy_folder("s3://bucket/lib/")), address_of(Path("/films"))
    ('s3://bucket/lib', None)
    """
    return unquote(folder.name) if is_elsewhere(folder.name) and folder.parent == copies_folder() else None


def is_elsewhere(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the file at a path is a copy of one in object storage, so that it can be fetched anywhere.

    >>> is_elsewhere("/cache/s3%3A%2F%2Fbucket%2Flib-sources/bucket/a.mp4"), is_elsewhere("/films/a.mp4")
    (True, False)
    """
    return _QUOTED_SCHEME in os.fsdecode(path)


def folder_here(folder: Path) -> str:
    """A hint for a message if a named library does not exist, but the working folder has a folder of that name.

    >>> folder_here(Path("/films"))
    ''
    """
    try:
        meant = folder.parent == data_folder() and Path(folder.name).is_dir()
    except MomentseekError:
        return ""
    return f"; the folder here is --library .{os.sep}{folder.name}" if meant else ""


def place_text(folder: Path) -> str:
    """The address of the library in a folder if the folder is a copy, otherwise the folder's path.

    >>> place_text(Path("/films")), place_text(library_folder("s3://bucket/lib"))
    ('/films', 's3://bucket/lib')
    """
    return address_of(folder) or str(folder)


def library_name(folder: Path) -> str:
    """The name of the library in a folder: the folder's name, or the end of its address.

    >>> library_name(Path("/data/films")), library_name(library_folder("s3://bucket/lib"))
    ('films', 'lib')
    """
    return place_text(folder).rpartition("/")[2] if is_elsewhere(folder.name) else folder.name


def sources_folder(library: Path) -> Path:
    """The folder for copies of remote videos, next to the library's folder.

    >>> str(sources_folder(Path("/data/films")))
    '/data/films-sources'
    """
    return library.with_name(f"{library.name}-sources")


def library_option(folder: Path) -> str:
    """The command-line option for the library in ``folder``; empty if it is the default library.

    >>> library_option(Path("/films of mine"))
    " --library '/films of mine'"
    """
    try:
        if folder == Path(os.path.abspath(library_folder())):
            return ""
        name = folder.name if folder.parent == data_folder() else place_text(folder)
    except MomentseekError:  # no home folder, or a settings file that cannot be read
        name = str(folder)
    return f" --library {shlex.quote(name)}"
