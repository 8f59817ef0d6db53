"""Registries of plug-ins by name (measures, formats, models, localisers, …), and errors for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, MutableMapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from momentseek.core.errors import MomentseekError

T = TypeVar("T")


def did_you_mean(name: str, known: Collection[str], otherwise: str | None = None) -> str:
    """The end of a sentence about an unknown name: the known name nearest to it, or all of them.

    >>> did_you_mean("watersheds", ["scenes", "watershed"]), did_you_mean("x", ["scenes", "watershed"])
    ("did you mean 'watershed'?", 'there are scenes, watershed')
    """
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return otherwise if otherwise is not None else f"there are {', '.join(known)}"


class Registry(MutableMapping[str, T]):
    """Things of one kind by their unique names, in the order in which they were added.

    ``package`` names the package whose modules add themselves: all of them (but no subpackages) are imported when a
    name is first asked for, so that a new file in that folder is all it takes to be known.

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

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._things: dict[str, T] = {}

    def add(self, name: str, thing: T) -> None:
        """Make a thing known by a name that no other has."""
        if name in self._things:
            raise MomentseekError(f"a {self.kind} called {name!r} is there already; choose another name")
        self._things[name] = thing

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a function or class with the name by which it is found."""

        def enter(thing: T) -> T:
            self.add(name, thing)
            return thing

        return enter

    def __getitem__(self, name: str) -> T:
        """The thing called ``name``; where there is none, an error that names the nearest.

        The module of that name is imported first, if there is one: mostly it adds the thing, and no other is needed.
        """
        if name not in self._things and self._package is not None and name.isidentifier():
            module = f"{self._package}.{name}"
            try:
                import_module(module)
            except ModuleNotFoundError as e:
                if e.name != module:
                    raise
        known = self._things if name in self._things else self._load()
        if name not in known:
            raise MomentseekError(f"there is no {self.kind} {name!r}; {did_you_mean(name, known)}")
        return known[name]

    def get(self, name: str, default: Any = None, /) -> Any:
        """The thing called ``name``, or ``default`` where there is none."""
        return self._load().get(name, default)

    def __setitem__(self, name: str, thing: T) -> None:
        """Make a thing known by a name, in the place of another that had it."""
        self._load()[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._load()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def copy(self) -> Registry[T]:
        """Another registry with the same things, to which others can be added."""
        other: Registry[T] = Registry(self.kind)
        other.update(self)
        return other

    def load(self) -> None:
        """Import the plug-ins now, so that their order does not depend on which of them is imported first."""
        self._load()

    def _load(self) -> dict[str, T]:
        package = self._package  # another thread may finish meanwhile
        if package is not None:
            for module in iter_modules(import_module(package).__path__):
                if not module.ispkg:
                    import_module(f"{package}.{module.name}")
            self._package = None
        return self._things
