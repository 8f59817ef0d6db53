"""What a later version does with a kept library: ``later.py FOLDER read|change`` prints what it says then, as JSON."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import freeze

from momentseek.api.library import Library, open_store
from momentseek.library.store import LibraryStore
from momentseek.server.judging.store import JudgementStore


def change(folder: Path) -> dict[str, int]:
    """Add the films where they lie now and a new one, hear and judge it, and write all vectors again."""
    freeze.make_film(folder / "films" / "new.mp4", ("blue", "green"))
    added = {}
    for place in ("library", "shards"):
        with open_store(folder / place) as store:
            store.options = replace(store.options, transcriber="listener", ocr_model="clerk")
            added[place] = store.add(folder / "films").added
            store.compact()
    with LibraryStore.open(folder / "library", create=False) as library:
        library.reencode("colours-2")
        library.reencode("colours")
    with JudgementStore(folder / "library") as store, store.changes():
        store.add_judgement(1, "carl", 3)
    return added


def main(folder: Path, what: str) -> dict[str, Any]:
    os.environ["MOMENTSEEK_TRANSCRIBE"] = "on"
    freeze.install()
    found: dict[str, Any] = {"added": change(folder) if what == "change" else {}, "problems": []}
    for place, name in (("library", "answers"), ("shards", "in shards")):
        with open_store(folder / place) as store:
            found["problems"] += store.verify().problems
        with Library.open(folder / place) as library:
            found[name] = freeze.answers(library)
    return found | {"said": freeze.said(folder / "library")}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
