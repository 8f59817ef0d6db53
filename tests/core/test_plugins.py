from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from momentseek.core import plugins
from momentseek.core.errors import MomentseekError
from momentseek.core.plugins import PluginSource
from momentseek.core.registry import Registry

SHAPES: Registry[int] = Registry("shape", group="shapes")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plug-in is known, and none stays known."""
    monkeypatch.setenv(plugins.PLUGINS_VARIABLE, "")  # what a test leaves there is taken back at its end
    monkeypatch.setattr(plugins, "_done", {})
    monkeypatch.setattr(sys.modules[__name__], "SHAPES", Registry("shape", group="shapes"))
    plugins._entry_points.cache_clear()


@pytest.fixture
def plugin_file(tmp_path: Path) -> Callable[..., Path]:
    def write(code: str, name: str = "shapes.py") -> Path:
        path = tmp_path / name
        path.write_text(f"import sys\nSHAPES = sys.modules[{__name__!r}].SHAPES\n{code}\n")
        return path

    return write


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a package importable whose modules are entry points of the group ``shapes``."""

    def install(version: str = "1.2", **modules: str) -> None:
        site = tmp_path / "site"
        about = site / f"some_shapes-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: some-shapes\nVersion: {version}\n")
        lines = [f"{name} = some_shapes_{name}" for name in modules]
        (about / "entry_points.txt").write_text("\n".join(["[momentseek.shapes]", *lines]))
        for name, code in modules.items():
            (site / f"some_shapes_{name}.py").write_text(
                f"import sys\nSHAPES = sys.modules[{__name__!r}].SHAPES\n{code}\n"
            )
            monkeypatch.delitem(sys.modules, f"some_shapes_{name}", raising=False)
        monkeypatch.syspath_prepend(str(site))

    return install


def test_file_registers_its_objects(plugin_file: Callable[..., Path]) -> None:
    path = plugin_file("SHAPES.add('square', 4)")
    plugins.use_file(str(path))
    plugins.use_file(str(path))
    assert (SHAPES["square"], list(SHAPES)) == (4, ["square"])
    source = SHAPES.source("square")
    assert source is not None
    assert (source.file, len(source.digest)) == (str(path), 16)


def test_child_processes_load_the_same_files(plugin_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """``use_file`` leaves the path in the environment; a process that inherits it needs no option."""
    path = plugin_file("SHAPES.add('square', 4)")
    monkeypatch.setenv(plugins.PLUGINS_VARIABLE, str(path))
    assert "square" in SHAPES


def test_imports_only_the_requested_plugin(installed: Callable[..., None]) -> None:
    installed(circle="SHAPES.add('circle', 0)", square="SHAPES.add('square', 4)")
    SHAPES.add("line", 2)
    assert SHAPES["line"] == 2
    assert SHAPES["square"] == 4
    assert "some_shapes_circle" not in sys.modules
    assert SHAPES.source("square") == PluginSource(package="some-shapes", version="1.2")
    assert SHAPES.source("line") is None
    assert sorted(SHAPES) == ["circle", "line", "square"]


def test_own_names_come_first_and_import_no_plugin(installed: Callable[..., None]) -> None:
    installed(broken="raise ValueError('no')")
    SHAPES.add("line", 2)
    assert next(name for name in SHAPES if name == "line") == "line"
    assert "line" in SHAPES
    with pytest.raises(MomentseekError, match=r"^plug-in broken of some-shapes 1\.2"):
        list(SHAPES)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("1 / 0", "cannot be imported (ZeroDivisionError: division by zero, at line 3 of shapes.py)"),
        ("def f(:", "cannot be imported (SyntaxError: invalid syntax (shapes.py, line 3))"),
        ("import no_such_package", "cannot be imported (ModuleNotFoundError: No module named 'no_such_package'"),
        ("raise SystemExit(0)", "cannot be imported (SystemExit: 0"),
        ("SHAPES.add('line', 3)", "a shape called 'line' already exists; choose another name"),
    ],
)
def test_broken_file_is_one_sentence_each_time(code: str, sentence: str, plugin_file: Callable[..., Path]) -> None:
    SHAPES.add("line", 2)
    path = plugin_file(code)
    for _ in range(2):
        with pytest.raises(MomentseekError) as found:
            plugins.use_file(str(path))
        assert str(found.value).startswith(f"plug-in {path}")
        assert sentence in str(found.value)
        assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("missing.py", "cannot be read (No such file or directory)"), ("notes.txt", "is not a Python")],
)
def test_rejects_non_python_file(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(MomentseekError) as found:
        plugins.use_file(str(tmp_path / name))
    assert sentence in str(found.value)


def test_own_modules_imported_by_a_plugin_stay_own(plugin_file: Callable[..., Path]) -> None:
    plugins.use_file(str(plugin_file("import momentseek.search.localise.whole\nSHAPES.add('square', 4)")))
    from momentseek.search.localise.localiser import LOCALISERS

    assert LOCALISERS["whole"] is not None
    assert LOCALISERS.source("whole") is None


def test_source_round_trip() -> None:
    for source in (PluginSource(package="a", version="1"), PluginSource(file="/x.py", digest="0f")):
        assert PluginSource.of(source.as_dict()) == source
    assert PluginSource(package="a", version="1").remedy == "install it: pip install 'a==1'"


def test_entry_points_match_importlib() -> None:
    assert EntryPoint("a", "a_package.module", "momentseek.shapes").module == "a_package.module"
