import pytest

from momentseek.cli.options import check_targets
from momentseek.core.errors import MomentseekError


def test_outputs_never_overwrite_anything(tmp_path):
    labels, full, empty = (tmp_path / name for name in ("labels.csv", "full.csv", "empty.csv"))
    labels.write_text("x")
    full.write_text("x")
    empty.touch()
    check_targets([str(labels)], [str(empty), str(tmp_path / "new.csv"), None], force=False)
    check_targets([str(labels)], [str(full)], force=True)
    for outputs, force, why in (
        ([labels], True, "is an input"),
        ([full], False, "already exists"),
        ([tmp_path / "a", tmp_path / "a"], False, "two outputs"),
        ([tmp_path], True, "is a folder"),
        ([tmp_path / "no" / "x.csv"], True, "there is no folder"),
    ):
        with pytest.raises(MomentseekError, match=why):
            check_targets([str(labels)], [str(o) for o in outputs], force)


def test_callback_flag_is_part_of_the_command(momentseek, monkeypatch, tmp_path):
    monkeypatch.setenv("MOMENTSEEK_INSECURE_CLUSTER", "")
    done = momentseek("add", str(tmp_path / "none"), "--insecure", "--library", str(tmp_path / "library"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
