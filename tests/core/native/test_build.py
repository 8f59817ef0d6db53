from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys

import pytest

from momentseek.core.native import build
from momentseek.core.native import kernels as library

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one small source instead of the kernels."""
    (tmp_path / "one.c").write_text('__attribute__((visibility("default"))) int one(void) { return 1; }\n')
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    build.library_path.cache_clear()
    yield tmp_path
    build.library_path.cache_clear()


@needs_compiler
def test_library_is_built_once(folder):
    path = build.build()
    assert ctypes.CDLL(str(path)).one() == 1
    before = path.stat()
    assert build.build() == path
    assert path.stat() == before
    assert sorted(p.name for p in folder.iterdir()) == [path.name, "one.c"]


@needs_compiler
def test_outdated_library_is_never_loaded_and_is_deleted(folder):
    old = build.build()
    (folder / "one.h").write_text("/* more */\n")
    build.library_path.cache_clear()
    assert build.library_path() != old
    assert library.kernels.__wrapped__() is None
    assert build.build().exists()
    assert not old.exists()


@pytest.mark.parametrize(
    ("compiler", "reason"), [("/nowhere/cc -O1", "there is no /nowhere/cc"), ("false", "false failed")]
)
def test_missing_compiler_is_one_sentence_and_leaves_nothing(folder, monkeypatch, compiler, reason):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(build.CompilerError, match=reason):
        build.build()
    assert [p.name for p in folder.iterdir()] == ["one.c"]


@needs_compiler
def test_faulty_source_is_named(folder):
    (folder / "one.c").write_text("int one(void) { return nothing; }\n")
    with pytest.raises(build.CompilerError, match=r"one\.c.*error.*nothing"):
        build.build()


def test_build_needs_only_the_standard_library():
    """Installation runs it before any package is installed."""
    code = f"import sys; exec(open({build.__file__!r}).read(), {{'__name__': 'b', '__file__': 'x'}}); "
    code += "print([m for m in sys.modules if m.partition('.')[0] in ('numpy', 'momentseek')])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
