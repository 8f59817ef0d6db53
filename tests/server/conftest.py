"""A small library that is made once, and servers for it inside this process."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.server.app import create_app
from momentseek.server.settings import Limits, ServerSettings

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
LIGHT = Path(__file__).parent.parent / "library" / "light.py"


def _module(name: str, place: Path) -> ModuleType:
    """A helper by its place: tests have no packages."""
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _installed() -> Iterator[None]:
    """Encoders that cost nothing: images are colours, texts are letters."""
    from momentseek.recognition.encoders import registry

    before = dict(registry.IMAGE_TEXT_ENCODERS), dict(registry.TEXT_ENCODERS)
    _module("light_encoders", LIGHT).install()
    try:
        yield
    finally:
        for table, old in zip((registry.IMAGE_TEXT_ENCODERS, registry.TEXT_ENCODERS), before, strict=True):
            table.clear()
            table.update(old)


@pytest.fixture
def light() -> Iterator[None]:
    with _installed():
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, make_video: Callable[..., Path]) -> Path:
    """``films/`` with two videos and a broken one, ``more/`` with one to add, and ``library/`` with the films."""
    pytest.importorskip("av")
    folder = tmp_path_factory.mktemp("server")
    films, more = folder / "films", folder / "more"
    (films / "inner").mkdir(parents=True)
    more.mkdir()
    make_video(films / "one.mp4", [(6.0, RED), (6.0, GREEN)], rate=10, size=(64, 48))
    make_video(films / "inner" / "two <b>&\"'.webm", [(4.5, BLUE), (4.5, RED)], rate=10, size=(64, 48), codec="libvpx")
    make_video(more / "three.mp4", [(3.0, GREEN)], rate=10, size=(64, 48))
    (films / "one.srt").write_text(
        "1\n00:00:01,000 --> 00:00:03,000\nThe dogs were running.\n\n2\n00:00:07,000 --> 00:00:09,000\nIt is green.\n"
    )
    (films / "broken.mp4").write_bytes(b"not a video at all")
    with _installed(), Library.open(folder / "library", create=True, encoder="colours") as library:
        library.add(films)
    return folder


@pytest.fixture(scope="session")
def other(shared: Path) -> Path:
    """A library of another encoder over the same films, added by another path, and one more film."""
    copies = shared / "copies"
    shutil.copytree(shared / "films", copies, ignore=shutil.ignore_patterns("broken.mp4"))
    with _installed(), Library.open(shared / "other", create=True, encoder="colours-2") as library:
        library.add(shared / "more")
        library.add(copies)
    return shared / "other"


@pytest.fixture
def place(shared: Path, tmp_path: Path) -> Path:
    """A copy of the library that a test may change; the films are the shared ones."""
    own = shutil.ignore_patterns("judgements*", "shelf*", "bookmarks*")  # what another test judged or kept there
    shutil.copytree(shared / "library", tmp_path / "library", ignore=own)
    return tmp_path / "library"


@pytest.fixture
def serve(shared: Path, light: None) -> Iterator[Callable[..., TestClient]]:
    """``serve(library=…, token=…, limits=Limits(…))``: a client of a new server."""
    opened: list[TestClient] = []

    def make(library: Path | None = None, *, limits: Limits | None = None, **settings: Any) -> TestClient:
        made = ServerSettings(limits=limits or Limits(), **settings)
        client = TestClient(create_app(library or shared / "library", made), base_url="http://localhost")
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve: Callable[..., TestClient]) -> TestClient:
    """Of a server on this machine, without a token."""
    return serve()


@pytest.fixture
def ids(client: TestClient) -> dict[str, int]:
    """Name → id."""
    return {video["name"]: video["id"] for video in client.get("/api/v1/videos").json()["videos"]}


@pytest.fixture(scope="session")
def documented() -> ModuleType:
    """``documented.operations(client)`` and ``documented.attempt(operation, …)``: see documented.py."""
    pytest.importorskip("schemathesis")
    return _module("documented", Path(__file__).parent / "documented.py")
