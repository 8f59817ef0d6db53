"""Which files belong to which video."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.media.subtitles.find import Sidecar, find_sidecars, match_sidecar


@pytest.mark.parametrize(
    ("name", "language", "flags"),
    [
        ("film.srt", None, set()),
        ("Film.SRT", None, set()),
        ("film.mp4.srt", None, set()),
        ("film.en.srt", "en", set()),
        ("film.eng.vtt", "en", set()),
        ("film.mp4.de.ass", "de", set()),
        ("film.en-US.forced.vtt", "en-US", {"forced"}),
        ("film.pt_BR.srt", "pt-BR", set()),
        ("film.zh-Hant.srt", "zh-Hant", set()),
        ("film.hi.srt", "hi", set()),
        ("film.en.hi.srt", "en", {"sdh"}),
        ("film.en.cc.sbv", "en", {"sdh"}),
        ("film.sdh.en.srt", "en", {"sdh"}),
        ("film.forced.srt", None, {"forced"}),
        ("film.English.srt", "en", set()),
        ("film [en].srt", "en", set()),
        ("film_en.srt", "en", set()),
        ("film.en.2.srt", "en", set()),
    ],
)
def test_matching_names(name: str, language: str | None, flags: set[str]) -> None:
    assert match_sidecar(Path(name), Path("film.mp4")) == Sidecar(Path(name), language, frozenset(flags))


@pytest.mark.parametrize("name", ["film 2.srt", "film.2.srt", "films.srt", "film-trailer.srt", "film.txt", "other.srt"])
def test_other_names(name: str) -> None:
    assert match_sidecar(Path(name), Path("film.mp4")) is None


def found(video: Path, folder: Path | None = None) -> list[str]:
    top = video.parent if folder is None else folder
    return [str(sidecar.path.relative_to(top)) for sidecar in find_sidecars(video, folder)]


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_files_next_to_the_video_and_in_named_folders(tmp_path: Path) -> None:
    touch(*(tmp_path / name for name in ["film.en.srt", "film.srt", "Subs/film.de.srt", "SUBTITLES/film.fr.vtt"]))
    touch(tmp_path / "Subs/film/2_English.srt", tmp_path / "Subs/other.srt", tmp_path / "elsewhere/film.it.srt")
    assert sorted(found(tmp_path / "film.mp4")) == [
        "SUBTITLES/film.fr.vtt",
        "Subs/film.de.srt",
        "Subs/film/2_English.srt",
        "film.en.srt",
        "film.srt",
    ]
    languages = {sidecar.path.name: sidecar.language for sidecar in find_sidecars(tmp_path / "film.mp4")}
    assert languages["2_English.srt"] == "en"


def test_given_folder_is_searched_flat_and_as_a_mirror(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    touch(texts / "ep1.en.srt", texts / "s1/ep1.srt", texts / "show/s1/ep1.de.srt", texts / "s2/ep1.srt")
    assert found(tmp_path / "show/s1/ep1.mkv", texts) == ["show/s1/ep1.de.srt", "s1/ep1.srt", "ep1.en.srt"]


def test_new_file_is_found_at_once(tmp_path: Path) -> None:
    assert find_sidecars(tmp_path / "film.mp4") == []
    touch(tmp_path / "film.srt")
    assert found(tmp_path / "film.mp4") == ["film.srt"]


def test_strange_names(tmp_path: Path) -> None:
    touch(tmp_path / "a\nb 🎬.en.srt")
    assert found(tmp_path / "a\nb 🎬.mp4") == ["a\nb 🎬.en.srt"]
    assert find_sidecars("no\0such/film.mp4") == []
    assert find_sidecars(tmp_path / "film.mp4", tmp_path / "absent") == []
