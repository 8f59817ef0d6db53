import sys
import threading
from pathlib import Path

import pytest

from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.encoders import load_ahead
from momentseek.library.store import LibraryStore
from momentseek.recognition.encoders import registry
from momentseek.recognition.encoders.registry import image_text_encoder


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch):
    """The name of an encoder that takes a while to load, with what loads it and how often it was."""
    loaded, go_on = [], threading.Event()

    def load():
        go_on.wait(10)
        loaded.append(object())
        return loaded[-1]

    monkeypatch.setitem(registry.IMAGE_TEXT_ENCODERS, "slow", load)
    return loaded, go_on


def library_of(folder: Path, spec: str) -> Path:
    with LibraryStore.open(folder, create=True) as library, library.catalog.changes():
        library.catalog.set_encoder(EncoderRow("vision", spec, spec, "1", 4))
    return folder


def test_who_asks_meanwhile_gets_the_encoder_that_is_being_loaded(spec, tmp_path):
    loaded, go_on = spec
    turn = sys.getswitchinterval()
    thread = load_ahead(library_of(tmp_path / "library", "slow"))
    assert thread is not None
    threading.Timer(0.05, go_on.set).start()
    found = image_text_encoder("slow")
    thread.join(10)
    assert loaded == [found]
    assert sys.getswitchinterval() == turn


def test_nothing_is_loaded_without_a_library_an_encoder_or_for_a_model(tmp_path):
    assert load_ahead(tmp_path) is None
    with LibraryStore.open(tmp_path / "new", create=True):
        assert load_ahead(tmp_path / "new") is None
    assert load_ahead(library_of(tmp_path / "trained", "model:0123456789abcdef")) is None
    damaged = library_of(tmp_path / "damaged", "slow")
    with Catalog(damaged).changes() as database:
        database.execute("DROP TABLE encoders")
    assert load_ahead(damaged) is None


def test_what_fails_ahead_is_said_where_the_encoder_is_asked_for(tmp_path):
    thread = load_ahead(library_of(tmp_path / "library", "thongs"))
    assert thread is not None
    thread.join(10)
    with pytest.raises(Exception, match="there is no image-text encoder 'thongs'; did you mean 'things'"):
        image_text_encoder("thongs")
