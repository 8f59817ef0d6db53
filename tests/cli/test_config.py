"""The settings file: settings apply after flags and the environment; unknown keys are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from momentseek.library.location import library_folder
from momentseek.library.store import LibraryStore


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "config.toml"
    monkeypatch.setenv("MOMENTSEEK_CONFIG", str(path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MOMENTSEEK_LIBRARY", raising=False)
    return path


def test_setting_is_stored_shown_and_removed(momentseek: Callable[..., Any], config: Path) -> None:
    assert "nothing is set" in momentseek("config", "list").stderr
    assert momentseek("config", "set", "search.k", "7").returncode == 0
    assert momentseek("config", "set", "serve.folder", "/tmp", "/").returncode == 0
    assert momentseek("config", "set", "library", "films").returncode == 0
    assert tomllib.loads(config.read_text()) == {
        "library": "films", "search": {"k": 7}, "serve": {"folder": ["/tmp", "/"]},
    }  # fmt: skip
    assert momentseek("config", "get", "search.k").stdout == "7\n"
    assert momentseek("config", "list").stdout == "library = films\nsearch.k = 7\nserve.folder = /tmp /\n"
    assert momentseek("config", "path").stdout == f"{config}\n"
    assert momentseek("config", "unset", "search.k").returncode == 0
    assert "search" not in tomllib.loads(config.read_text())
    assert momentseek("config", "get", "search.k").returncode == 1
    assert "search.k " in momentseek("config", "list", "--all").stdout


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("searhc.k", "7"), "did you mean 'search.k'?"),
        (("search.kk", "7"), "did you mean 'search.k'?"),
        (("libary", "films"), "did you mean 'library'?"),
        (("search.k", "0"), "0 is not in the range"),
        (("search.k", "many"), "'many' is not a valid integer range"),
        (("search.k", "1", "2"), "takes one value"),
        (("search.explain", "perhaps"), "write yes or no"),
        (("search.group", "film"), "'film' is not one of"),
        (("remove.yes", "yes"), "cannot be a setting"),
        (("search.library", "films"), "search.library is not a setting; set library for all commands"),
        (("models.name", "x"), "there is no setting"),
    ],
)
def test_rejects_values_that_no_option_accepts(
    momentseek: Callable[..., Any], config: Path, given: tuple[str, ...], why: str
) -> None:
    done = momentseek("config", "set", *given)
    assert done.returncode == 2
    assert why in done.stderr
    assert not config.exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[search]\nkk = 3\n", "there is no setting 'search.kk'; did you mean 'search.k'?"),
        ("[searhc]\nk = 3\n", "there is no setting 'searhc.k'; did you mean 'search.k'?"),
        ("[search]\nk = [3]\n", "search.k must be one value"),
        ("[search]\nexplain = 3\n", "search.explain must be true or false"),
        ("library = 3\n", "library must be a text"),
        ("library = \n", "cannot be read as TOML"),
    ],
)
def test_invalid_file_stops_the_command(momentseek: Callable[..., Any], config: Path, text: str, why: str) -> None:
    config.parent.mkdir()
    config.write_text(text)
    done = momentseek("search", "a dog")
    assert done.returncode == 2
    assert why in done.stderr
    assert str(config) in done.stderr


def test_flag_overrides_environment_overrides_file(
    momentseek: Callable[..., Any], config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "has no library; make one with: momentseek add FOLDER\n" in momentseek("status").stderr
    momentseek("config", "set", "library", "filed")
    assert library_folder() == tmp_path / "momentseek" / "filed"
    monkeypatch.setenv("MOMENTSEEK_LIBRARY", "surrounding")
    assert library_folder() == tmp_path / "momentseek" / "surrounding"
    assert "momentseek/typed" in momentseek("status", "--library", "typed").stderr
    assert "momentseek add FOLDER --library typed" in momentseek("status", "--library", "typed").stderr
    momentseek("config", "set", "search.k", "7")
    assert "default: 7" in momentseek("search", "--help").stdout


def test_settings_of_commands_under_a_noun_and_by_former_names(momentseek: Callable[..., Any], config: Path) -> None:
    assert momentseek("config", "set", "ocr.run.every", "2").returncode == 0
    assert tomllib.loads(config.read_text()) == {"ocr": {"run": {"every": 2.0}}}
    assert "default: 2.0;" in " ".join(momentseek("ocr", "run", "--help").stdout.split())
    assert "ocr.run.ocr-model " in momentseek("config", "list", "--all").stdout
    config.write_text('[read]\nreader = "ppocr:x"\nevery = 3\n')
    assert "default: 3;" in " ".join(momentseek("ocr", "run", "--help").stdout.split())
    assert momentseek("config", "get", "read.reader").stdout == "ppocr:x\n"
    config.write_text('[transcript]\nformat = "vtt"\n')
    assert momentseek("config", "list").stdout == "transcript.format = vtt\n"
    assert "default: vtt" in momentseek("transcript", "show", "--help").stdout
    assert "did you mean 'ocr.run.every'?" in momentseek("config", "set", "ocr.every", "2").stderr


def test_encoder_setting_applies_to_new_libraries(momentseek: Callable[..., Any], config: Path, tmp_path: Path) -> None:
    LibraryStore.open(tmp_path / "momentseek" / "default", create=True).close()
    momentseek("config", "set", "add.encoder", "file:/nowhere")
    (tmp_path / "films").mkdir()
    assert "/nowhere" not in momentseek("add", tmp_path / "films").stderr
    assert "/nowhere" in momentseek("add", tmp_path / "films", "--library", "new").stderr


def test_password_is_private(momentseek: Callable[..., Any], config: Path) -> None:
    said = momentseek("config", "set", "serve.database", "postgresql://ann:secret@db/films")
    assert config.stat().st_mode & 0o777 == 0o600
    shown = [said, momentseek("config", "list"), momentseek("config", "list", "--json")]
    assert not any("secret" in one.stdout + one.stderr for one in shown)
    assert "postgresql://ann:***@db/films" in shown[1].stdout
