"""A process that searches a library for a server: ``python -m momentseek.server.search_worker LIBRARY``."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.core.workers import Message, Task, serve
from momentseek.recognition.runtime import THREADS_VARIABLE
from momentseek.server.errors import ApiError, api_error
from momentseek.server.routes.search import search_json
from momentseek.server.schemas import SearchParametersIn


def answer(library: Library, asked: Sequence[Mapping[str, Any]], rerankers: Mapping[str, Path]) -> Iterator[Message]:
    """The answers to some searches, which are encoded together: the body of each, or its error."""
    with suppress(Exception):  # each search reports its own error
        library.prepare([one["q"] for one in asked])
    for one in asked:
        try:
            yield Message("item", {"status": 200}, search_json(library, SearchParametersIn(**one), rerankers))
        except (ApiError, MomentseekError) as e:
            error = api_error(e)
            yield Message("item", {"status": error.status, "code": error.code, "text": error.message})
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]  # what it says may be the query, which is private
            text = f"{type(e).__name__} in {Path(where.filename).name}:{where.lineno}"
            yield Message("item", {"status": 500, "code": "fault", "text": text})
    yield Message("end")


def load(place: str) -> Mapping[str, Task]:
    """Open the library, and load its encoders."""
    library = Library.open(place, create=False)
    with suppress(MomentseekError):  # the first real search reports it
        library.search("a warm welcome", 1)

    def search(asked: Sequence[Mapping[str, Any]], rerankers: Mapping[str, str]) -> Iterator[Message]:
        return answer(library, asked, {name: Path(folder) for name, folder in rerankers.items()})

    return {"search": search}


def main() -> None:
    """Answer searches until standard input is closed."""
    os.environ.setdefault(THREADS_VARIABLE, "1")  # other processes use the other processors

    def prepare(_: Callable[[], None]) -> Mapping[str, Task]:
        return load(sys.argv[1])

    serve(prepare)


if __name__ == "__main__":
    main()
