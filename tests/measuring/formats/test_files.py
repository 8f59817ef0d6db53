import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import write_all


def test_all_files_or_none(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(MomentseekError, match="is a folder"):
        write_all({tmp_path / "a.json": b"a", tmp_path / "there": b"b"})
    with pytest.raises(MomentseekError, match="cannot be written"):
        write_all({tmp_path / "a.json": b"a", tmp_path / "nowhere/b.json": b"b"})
    assert [p.name for p in tmp_path.iterdir()] == ["there"]
    write_all({tmp_path / "a.json": b"a", tmp_path / "b.json": b"b"})
    assert (tmp_path / "a.json").read_bytes() + (tmp_path / "b.json").read_bytes() == b"ab"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "b.json", "there"]
