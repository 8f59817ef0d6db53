"""Plug-ins from outside the package: installed packages that declare entry points, and files given by ``--plugin``.

A plug-in is a module that registers something when it is imported, like the package's own files. A package lists such
modules in its ``pyproject.toml``, under the group of what they add:

    [project.entry-points."momentseek.models"]
    my-model = "my_package.model"

The name of an entry point is the name that its module registers: only the requested plug-in is imported. A single file
needs no package: ``momentseek --plugin my_model.py train my-model …``, or ``MOMENTSEEK_PLUGINS``, which lists files
separated by ``:`` (``;`` on Windows) and which child processes inherit.

Every command imports this module, so it imports little itself: the metadata of installed packages are read only when a
registry is asked for a name that is not the package's own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from momentseek.core.errors import MomentseekError, parameter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGINS_VARIABLE = "MOMENTSEEK_PLUGINS"
OWN_PACKAGE = __name__.partition(".")[0]
GROUP_PREFIX = f"{OWN_PACKAGE}."


@dataclass(frozen=True)
class PluginSource:
    """The origin of a plug-in: a package with its version, or a file with the start of its SHA-256."""

    package: str = ""
    version: str = ""
    file: str = ""
    digest: str = ""

    def __str__(self) -> str:
        """Return its name in messages.

        >>> print(PluginSource(package="momentseek-example", version="1.0"), PluginSource(file="/tmp/model.py"))
        momentseek-example 1.0 /tmp/model.py
        """
        return f"{self.package} {self.version}" if self.package else self.file

    @property
    def remedy(self) -> str:
        """How to get it if it is missing."""
        if self.package:
            return f"install it: pip install '{self.package}=={self.version}'"
        return f"load it: {parameter('plugin', self.file)}"

    def as_dict(self) -> dict[str, str]:
        """Return the known fields, for storage."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> PluginSource:
        """Return the source that ``as_dict`` stored; unknown fields are ignored."""
        return cls(**{name: str(stored.get(name, "")) for name in ("package", "version", "file", "digest")})


@cache
def source_of(module: str) -> PluginSource | None:
    """Return the package or file that a module belongs to; None for this package's own modules.

    >>> source_of("momentseek.core.errors") is None, source_of("click.core").package
    (True, 'click')
    """
    from importlib.metadata import packages_distributions, version

    top = module.partition(".")[0]
    if top == OWN_PACKAGE:
        return None
    if packages := packages_distributions().get(top):
        return PluginSource(package=packages[0], version=version(packages[0]))
    file = getattr(sys.modules.get(module), "__file__", None)
    return PluginSource(file=file or module)


class _Loading(threading.local):
    """The plug-in that a thread is importing."""

    source: PluginSource | None = None


_loading = _Loading()
_done: dict[object, MomentseekError | None] = {}
"""Imported files and entry points, and their errors."""


def current_source() -> PluginSource | None:
    """Return the plug-in whose import runs the calling code; None for our own modules, which plug-ins may import."""
    frame = sys._getframe(1) if _loading.source is not None else None
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    ours = frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == OWN_PACKAGE
    return None if ours else _loading.source


def named_files() -> list[str]:
    """Return the files listed in ``MOMENTSEEK_PLUGINS``."""
    return [name for name in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if name]


def use_file(path: str) -> None:
    """Import a file as a plug-in, in this process and in its child processes."""
    file = os.path.abspath(os.path.expanduser(path))
    if file not in named_files():
        os.environ[PLUGINS_VARIABLE] = os.pathsep.join([*named_files(), file])
    load_files()


def load_files() -> None:
    """Import the listed files that are not imported yet."""
    for name in named_files():
        file = os.path.abspath(os.path.expanduser(name))
        _import_once(file, f"plug-in {file}", lambda file=file: _import_file(file))  # type: ignore[misc]


def load_installed(group: str, name: str | None = None) -> None:
    """Import the installed plug-ins of a group such as ``models``; with ``name``, only that one."""
    for found in _entry_points(GROUP_PREFIX + group, tuple(sys.path)):
        if name is not None and found.name != name:
            continue
        package = found.dist.name if found.dist else found.module
        source = PluginSource(package=package, version=found.dist.version if found.dist else "")

        def load(module: str = found.module, source: PluginSource = source) -> None:
            with _note_source(source):
                import_module(module)

        _import_once((found.group, found.name, found.value), f"plug-in {found.name} of {source}", load)


def check_installed() -> dict[PluginSource, tuple[list[str], list[MomentseekError]]]:
    """Return the installed packages with plug-ins: what each adds, such as ``models: my-model``, and its errors."""
    from importlib.metadata import distributions

    found: dict[PluginSource, tuple[list[str], list[MomentseekError]]] = {}
    for package in distributions():
        for one in package.entry_points:
            if not one.group.startswith(GROUP_PREFIX):
                continue
            names, errors = found.setdefault(PluginSource(package=package.name, version=package.version), ([], []))
            group = one.group.removeprefix(GROUP_PREFIX)
            names.append(f"{group}: {one.name}")
            try:
                load_installed(group, one.name)
            except MomentseekError as e:
                errors.append(e)
    return found


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> Sequence[EntryPoint]:
    """Return the installed entry points of a group, read once for each ``sys.path``."""
    from importlib.metadata import entry_points  # takes 30 ms, and most commands do not need it

    return tuple(entry_points(group=group))


@contextmanager
def _note_source(source: PluginSource) -> Iterator[None]:
    before, _loading.source = _loading.source, source
    try:
        yield
    finally:
        _loading.source = before


def _import_file(file: str) -> None:
    import hashlib  # takes 10 ms, and only plug-in files need it

    try:
        with open(file, "rb") as opened:
            digest = hashlib.sha256(opened.read()).hexdigest()[:16]
    except OSError as e:
        raise MomentseekError(f"cannot be read ({e.strerror}); check the path") from None
    stem, ending = os.path.splitext(os.path.basename(file))
    if ending != ".py":
        raise MomentseekError("is not a Python file; give one that ends in .py")
    name = f"momentseek_plugin_{stem}_{hashlib.sha256(file.encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look for it
    try:
        with _note_source(PluginSource(file=file, digest=digest)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _import_once(key: object, what: str, load: Callable[[], None]) -> None:
    """Import a plug-in once; a failed import raises the same one-sentence error every time."""
    if key not in _done:
        _done[key] = None  # modules it imports may ask for it
        try:
            load()
        except KeyboardInterrupt:
            del _done[key]
            raise
        except MomentseekError as e:
            _done[key] = MomentseekError(f"{what}: {e}")
        except BaseException as e:  # a plug-in is foreign code, and may even call exit
            said = _describe_error(e)
            _done[key] = MomentseekError(f"{what} cannot be imported ({said}); correct it, or leave it out")
    if (failed := _done[key]) is not None:
        raise failed from None


def _describe_error(error: BaseException) -> str:
    """Return an error in one line, with the line where it was raised; a syntax error already names that."""
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or isinstance(error, SyntaxError):
        return said
    return f"{said}, at line {last.tb_lineno} of {os.path.basename(last.tb_frame.f_code.co_filename)}"
