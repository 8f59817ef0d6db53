"""Whether a library has changed."""

from __future__ import annotations

import zlib

from momentseek.api import Library


def generation_of(library: Library) -> int:
    """A number of the library's content, the same for every connection."""
    state = library.catalog.rows(
        """SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'videos'), (SELECT count(*) FROM videos),
                  (SELECT total(mtime_ns) FROM videos), (SELECT count(*) FROM cues), (SELECT count(*) FROM gone),
                  (SELECT total(tries) FROM failures), (SELECT fingerprint FROM encoders WHERE stream = 'vision')"""
    )[0]
    return zlib.crc32(repr(tuple(state)).encode())
