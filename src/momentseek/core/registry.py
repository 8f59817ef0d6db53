"""Registries of plug-ins by name (measures, formats, models, localisers, …), and errors for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, MutableMapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from momentseek.core import plugins
from momentseek.core.errors import MomentseekError
from momentseek.core.plugins import PluginSource

T = TypeVar("T")


def did_you_mean(name: str, known: Collection[str], otherwise: str | None = None) -> str:
    """Return the end of a sentence about an unknown name: the nearest known name, or all of them.

    >>> did_you_mean("watersheds", ["scenes", "watershed"]), did_you_mean("x", ["scenes", "watershed"])
    ("did you mean 'watershed'?", 'there are scenes, watershed')
    """
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return otherwise if otherwise is not None else f"there are {', '.join(known)}"


class Registry(MutableMapping[str, T]):
    """Objects of one kind by their unique names, in the order in which they were added.

    The modules of ``package`` register themselves: all of them (but no subpackages) are imported at the first lookup,
    so that adding a file to that folder is enough. ``group`` is the entry point group by which installed packages add
    theirs (``core.plugins``); they come after the package's own, and cannot replace them.

    >>> shapes: Registry[Callable[[], int]] = Registry("shape")
    >>> @shapes.register("square")
    ... def corners() -> int:
    ...     return 4
    >>> shapes["square"](), list(shapes), "circle" in shapes
    (4, ['square'], False)
    >>> shapes["sqare"]
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no shape 'sqare'; did you mean 'square'?
    """

    def __init__(self, kind: str, package: str | None = None, group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self._package = package
        self._things: dict[str, T] = {}
        self._sources: dict[str, PluginSource] = {}

    def add(self, name: str, thing: T) -> None:
        """Add an object under a name that is not taken."""
        source = plugins.current_source()
        known = self._things if source is None else self._load_own()
        if name in known:
            raise MomentseekError(f"a {self.kind} called {name!r} already exists; choose another name")
        self._things[name] = thing
        if source is not None:
            self._sources[name] = source

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a function or class to register it under a name."""

        def enter(thing: T) -> T:
            self.add(name, thing)
            return thing

        return enter

    def source(self, name: str) -> PluginSource | None:
        """Return the plug-in that added the object called ``name``; None for the package's own."""
        return self._sources.get(name)

    def __getitem__(self, name: str) -> T:
        """Return the object called ``name``; the error for an unknown name suggests the nearest."""
        if not self._find(name):
            raise MomentseekError(f"there is no {self.kind} {name!r}; {did_you_mean(name, self._load())}")
        return self._things[name]

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the object called ``name``, or ``default`` if there is none."""
        return self._things[name] if self._find(name) else default

    def __setitem__(self, name: str, thing: T) -> None:
        """Add an object under a name, replacing another one."""
        self._load()[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._load()[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, the package's own first; stopping among them loads no plug-ins."""
        own = tuple(self._load_own())
        yield from own
        yield from [name for name in self._load() if name not in own]

    def __len__(self) -> int:
        return len(self._load())

    def copy(self) -> Registry[T]:
        """Return another registry with the same objects, to which others can be added."""
        other: Registry[T] = Registry(self.kind)
        other.update(self)
        return other

    def load(self) -> None:
        """Import the package's own modules now, so that their order does not depend on which is imported first."""
        self._load_own()

    def _find(self, name: str) -> bool:
        """Whether there is an object called ``name``; imports no more than needed.

        The module of that name is imported first, if there is one, since it usually adds the object. Then follow the
        package's other modules, files given by ``--plugin``, and the installed plug-in of that name.
        """
        if name not in self._things and self._package is not None and name.isidentifier():
            module = f"{self._package}.{name}"
            try:
                import_module(module)
            except ModuleNotFoundError as e:
                if e.name != module:
                    raise
        if name in self._things or name in self._load_own():
            return True
        if self.group is not None:
            plugins.load_files()
            plugins.load_installed(self.group, name)
        return name in self._things

    def _load(self) -> dict[str, T]:
        """Return all objects, including plug-ins."""
        self._load_own()
        if self.group is not None:
            plugins.load_files()
            plugins.load_installed(self.group)
        return self._things

    def _load_own(self) -> dict[str, T]:
        package = self._package  # another thread may finish meanwhile
        if package is not None:
            for module in iter_modules(import_module(package).__path__):
                if not module.ispkg:
                    import_module(f"{package}.{module.name}")
            self._package = None
        return self._things
