"""Which folder a library is in: by its name, by its path, or as the environment or the settings file says."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from momentseek.core.config import read_config
from momentseek.core.errors import MomentseekError

DEFAULT_LIBRARY = "default"
LIBRARY_VARIABLE = "MOMENTSEEK_LIBRARY"


def data_folder() -> Path:
    """The user's folder for libraries: ``$XDG_DATA_HOME/momentseek``, or ``~/.local/share/momentseek``."""
    root = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(root):
        return Path(root) / "momentseek"
    try:
        return Path.home() / ".local" / "share" / "momentseek"
    except RuntimeError:
        raise MomentseekError("there is no home folder for the library; name one (`library`)") from None


def library_folder(given: str | None = None) -> Path:
    """The folder of the library called ``given``; else ``$MOMENTSEEK_LIBRARY``, the settings file's, ``default``.

    A plain name is a folder in the user's data folder; anything with a separator is a path; of an address
    (``s3://bucket/lib``) it is the folder of the library's replica on this machine.

    >>> str(library_folder("./films"))
    'films'
    """
    name = given or os.environ.get(LIBRARY_VARIABLE) or read_config().get("library") or DEFAULT_LIBRARY
    if "://" in name:
        from momentseek.cluster.replicas.place import local_place

        return local_place(name)
    separators = [s for s in (os.sep, os.altsep) if s]
    if any(s in name for s in separators) or name in (".", "..", "~"):
        return Path(name).expanduser()
    return data_folder() / name


def folder_here(folder: Path) -> str:
    """What to say besides where a library that was named is not there, and the working folder has one of that name.

    >>> folder_here(Path("/films"))
    ''
    """
    try:
        meant = folder.parent == data_folder() and Path(folder.name).is_dir()
    except MomentseekError:
        return ""
    return f"; the folder here is --library .{os.sep}{folder.name}" if meant else ""


def place_text(folder: Path) -> str:
    """What names the library in a folder: its address, if that is the folder of a replica, else the folder's path.

    >>> place_text(Path("/films")), place_text(library_folder("s3://bucket/lib"))
    ('/films', 's3://bucket/lib')
    """
    if "%3A%2F%2F" not in folder.name:
        return str(folder)
    from momentseek.cluster.replicas.place import address_of

    return address_of(folder) or str(folder)


def library_name(folder: Path) -> str:
    """What the library in a folder is called: by its folder, or by the end of its address.

    >>> library_name(Path("/data/films")), library_name(library_folder("s3://bucket/lib"))
    ('films', 'lib')
    """
    return place_text(folder).rpartition("/")[2] if "%3A%2F%2F" in folder.name else folder.name


def sources_folder(library: Path) -> Path:
    """The folder for copies of videos that lie elsewhere, beside the library's.

    >>> str(sources_folder(Path("/data/films")))
    '/data/films-sources'
    """
    return library.with_name(f"{library.name}-sources")


def library_option(folder: Path) -> str:
    """The option that names the library in ``folder`` on a command line; empty for the one that is meant anyway.

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
