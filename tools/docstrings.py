"""What griffe does to the package's docstrings before mkdocstrings shows them as Markdown on the page of the API."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|func|meth|mod):`~?([^`]+)`")


class MarkdownDocstrings(griffe.Extension):
    """Fences examples, drops Sphinx's roles, and shows methods that are taken from another class as methods."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Turn one docstring into Markdown."""
        if obj.docstring is not None:
            blocks = ROLE.sub(r"`\1`", obj.docstring.value).split("\n\n")
            obj.docstring.value = "\n\n".join(_fence(block) for block in blocks)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Let ``add = _verb(LibraryStore.add)`` lead to the method."""
        library = pkg["api.library.Library"]
        for name, member in list(library.members.items()):
            taken = re.fullmatch(r"_verb\((\w+)\.(\w+)\)", str(getattr(member, "value", "")))
            if taken is not None:
                method = library.modules_collection[library.module.resolve(taken[1])].all_members[taken[2]]
                library.set_member(name, griffe.Alias(name, method.canonical_path, parent=library))


def _fence(block: str) -> str:
    return f"```pycon\n{block}\n```" if block.lstrip().startswith(">>>") else block
