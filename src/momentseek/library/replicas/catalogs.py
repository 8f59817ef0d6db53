"""Copying a replica's catalog: out as one file, and in as one transaction that its readers see whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from momentseek.library.database import BUSY_SECONDS, CATALOG_FILE, DATABASE_ERRORS, unusable


def copy_catalog(folder: Path, target: Path) -> None:
    """Write the catalog of a library as one file; the same content gives the same bytes, page by page."""
    path = folder / CATALOG_FILE
    target.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as source, closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy)
    except DATABASE_ERRORS as e:
        raise unusable(path, e) from None


def install_catalog(fresh: Path, folder: Path) -> None:
    """Make a file the catalog of a library, in one transaction if there is one already that others may read."""
    path = folder / CATALOG_FILE
    try:
        if not path.exists():
            fresh.replace(path)
            return
        address = f"{fresh.absolute().as_uri()}?mode=ro&immutable=1"
        with (
            closing(sqlite3.connect(address, uri=True)) as source,
            closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as old,
        ):
            source.backup(old)
    except DATABASE_ERRORS as e:
        raise unusable(path, e) from None
