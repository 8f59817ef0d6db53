"""What mkdocs does before it builds the site: the pages in the repository's root join those of ``docs/``."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
JOINED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
"""File in the root → its page."""
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root."""
    for source, page in JOINED.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links between ``docs/`` and the root lead to pages; of a link to a source file only its path stays."""
    here = page.file.src_uri
    folder = "" if here in JOINED.values() else posixpath.dirname(f"docs/{here}")  # where the page's file is

    def follow(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or not (ROOT / path).exists():
            return link[0]
        to = JOINED.get(path, path.removeprefix("docs/"))
        if to == path:  # neither joined nor in docs/
            return f"{text} (`{path}`)"
        return f"[{text}]({posixpath.relpath(to, posixpath.dirname(here) or '.')}{anchor or ''})"

    return LINK.sub(follow, markdown)
