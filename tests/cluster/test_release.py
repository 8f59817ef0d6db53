"""Two Momentseeks of the same version can still be different ones."""

from __future__ import annotations

import shutil
from pathlib import Path

from momentseek.cluster.connection import Release, difference, source_print, this_release


def test_sources_that_differ_in_a_byte_or_a_name_have_another_print(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "same", "byte", "name")]
    (folders[0] / "room").mkdir(parents=True)
    (folders[0] / "a.py").write_bytes(b"x = 1\ny = 2\n")
    (folders[0] / "room" / "b.py").write_bytes(b"")
    for other in folders[1:]:
        shutil.copytree(folders[0], other)
    (folders[1] / "a.py").write_bytes(b"x = 1\r\ny = 2\r\n")
    (folders[1] / "notes.txt").write_text("not Python")
    (folders[2] / "a.py").write_bytes(b"x = 1\ny = 3\n")
    (folders[3] / "a.py").rename(folders[3] / "c.py")
    one, same, byte, name = map(source_print, folders)
    assert one == same
    assert len({one, byte, name}) == 3


def test_a_node_with_other_sources_is_refused() -> None:
    here = this_release()
    assert difference(here, this_release()) is None
    told = difference(Release(here.version, "0" * 64), here)
    assert told is not None
    assert f"other sources of Momentseek {here.version} (print 00000000)" in told
