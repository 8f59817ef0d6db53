from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import small_library as small
from click.testing import CliRunner

from momentseek.cli import cli
from momentseek.cli import results as player
from momentseek.cli import terminal as terminal_images
from momentseek.core.errors import MomentseekError
from momentseek.media.probe import probe
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders import registry

CUES = {"shore.mp4": [Cue(16.0, 18.0, "What a good dog!")]}


@pytest.fixture(autouse=True)
def words(monkeypatch):
    monkeypatch.setitem(registry.IMAGE_TEXT_ENCODERS, "words", small.WordVectors)


@pytest.fixture
def library(tmp_path):
    """Twelve empty films, and one of a dog on a beach from 15 to 24 s."""
    folder = tmp_path / "library"
    dog = small.film([("dog beach", 6)], seed=5)
    shore = np.concatenate([small.nothing(10, 100), dog, small.nothing(14, 101)])
    films = {f"other{i}.mp4": small.nothing(24, i) for i in range(12)} | {"shore.mp4": shore}
    catalog = small.fill(folder, films, CUES)
    with catalog.changes():
        catalog.set("encoder", "words")
    catalog.close()
    return folder


@pytest.fixture
def film(library, make_video):
    """Create the file of a video in the library, as if it had been added."""
    from momentseek.api.library import Library

    made = make_video(
        library / "shore.mp4", [(15.0, (9, 9, 9)), (9.0, (250, 0, 0)), (21.0, (9, 9, 9))], rate=5, size=(64, 48)
    )
    values = (made.stat().st_size, made.stat().st_mtime_ns)
    with Library.open(library) as opened, opened.store.catalog.changes() as db:
        db.execute("UPDATE videos SET size = ?, mtime_ns = ? WHERE name = 'shore.mp4'", values)
    return made


def search(library, *arguments):
    result = CliRunner().invoke(cli, ["search", "--library", str(library), *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_table_is_plain_without_a_terminal(library, film):
    result = search(library, "dog", "on", "the", "beach")
    header, first = result.stdout.splitlines()[:2]
    assert header.split() == ["#", "level", "when", "video", "said", "why"]
    assert first.split("  ")[0].strip() == "1"
    assert "strong" in first
    assert "shore.mp4" in first
    assert "What a good dog!" in first
    assert "seen #1, said #1" in first
    assert "\x1b" not in result.stdout
    assert "hidden; show them: --all" in result.stderr


def test_missing_file_is_marked(library):
    assert "shore.mp4 (file missing)" in search(library, "dog beach").stdout


def test_all_shows_hidden_results(library):
    hidden = search(library, "-k", 8, "dog beach")
    everything = search(library, "-k", 8, "dog beach", "--all")
    assert len(everything.stdout.splitlines()) == 9
    assert len(hidden.stdout.splitlines()) < 9
    assert "hidden" not in everything.stderr


def test_weak_results_are_noted_in_one_line(library):
    result = search(library, "giraffe", "-k", 5)
    assert len(result.stdout.splitlines()) == 4
    assert result.stderr == (
        "nothing matches well; these are the nearest; 17 weaker results hidden; show them: --all\n"
    )


def test_explanations_have_ranks_scores_and_the_curve(library):
    lines = search(library, "dog beach", "--explain", "-k", 1).stdout.splitlines()
    assert lines[2].startswith("   speech rank 1, score ")
    assert "; vision rank 1, score " in lines[2]
    assert lines[3].strip() == "said: words dog"
    assert len(lines[4].strip()) == 30
    assert set(lines[4].strip()) <= set("▁▂▃▄▅▆▇█")
    assert set(lines[5].strip()) == {"━"}
    assert 9 <= len(lines[5]) - 3 - lines[5].count("━") <= 11


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([""], "the query is empty"),
        ([], "the query is empty"),
        (["--", "-dog"], "only says what to avoid"),
        (['dog "x'], "without its partner at character 5"),
        (["dog", "--streams", "vision,smell"], "no stream 'smell'"),
        (["dog", "--localiser", "nope"], "no localiser 'nope'"),
        (["dog", "--fusion", "nope"], "no fusion 'nope'"),
    ],
)
def test_bad_queries_are_one_sentence(library, arguments, why):
    with pytest.raises(Exception, match=why) as caught:
        search(library, *arguments)
    assert type(caught.value).__module__.startswith("momentseek")


def test_no_library_and_an_empty_one(tmp_path):
    with pytest.raises(Exception, match="has no library; make one with: momentseek add"):
        search(tmp_path / "nowhere", "dog")
    from momentseek.api.library import Library

    Library.open(tmp_path / "empty", create=True).close()
    result = search(tmp_path / "empty", "dog")
    assert result.stderr == "the library is empty; add videos with: momentseek add FOLDER\n"


def test_clips_are_cut_named_and_never_overwritten(library, film, tmp_path):
    folder = tmp_path / "clips"
    result = search(library, "dog beach", "-k", 1, "--cut", folder, "--pad", 1)
    (clip,) = folder.iterdir()
    assert clip.name.startswith("01-shore-00m1")
    assert str(clip) in result.stderr
    assert probe(clip).duration > 8
    with pytest.raises(Exception, match="already exists"):
        search(library, "dog beach", "-k", 1, "--cut", folder)
    search(library, "dog beach", "-k", 1, "--cut", folder, "--force")


def test_failed_cut_is_reported(library, tmp_path):
    with pytest.raises(Exception, match="1 clip of 1 could not be cut"):
        search(library, "dog beach", "-k", 1, "--cut", tmp_path / "clips")


def test_opens_the_best_moment_at_its_start(library, film, monkeypatch):
    started = []
    monkeypatch.setattr(player, "launch_player", started.append)
    monkeypatch.setattr(player.shutil, "which", lambda name: f"/bin/{name}" if name == "vlc" else None)
    monkeypatch.setattr(player.player_command, "__defaults__", (player.shutil.which, "linux"))
    search(library, "dog beach", "--open")
    ((program, option, path),) = started
    assert (program, path) == ("/bin/vlc", str(film))
    assert 12 < float(option.removeprefix("--start-time=")) < 18


def test_opening_a_missing_file(library):
    with pytest.raises(Exception, match="connect its drive"):
        search(library, "dog beach", "--open")


def test_json_and_csv_hold_the_hits(library):
    found = json.loads(search(library, "dog beach", "--json").stdout)
    assert found["hits"][0]["level"] == "strong"
    assert found["hidden"] > 0
    assert found["note"] == ""
    absent = json.loads(search(library, "giraffe", "--json", "-k", 4).stdout)
    assert [hit["level"] for hit in absent.pop("hits")] == ["weak"] * 3
    assert absent == {
        "query": "giraffe",
        "hidden": 17,
        "note": "nothing matches well; these are the nearest",
        "complete": True,
    }
    rows = list(csv.DictReader(io.StringIO(search(library, "dog beach", "--csv").stdout)))
    assert len(rows) == len(found["hits"])
    with pytest.raises(SystemExit):
        raise search(library, "dog", "--json", "--csv").exception


def test_fusion_changes_scores(library):
    usual, scores = (
        json.loads(search(library, "dog beach", "--json", *more).stdout)["hits"]
        for more in ((), ("--fusion", "scores"))
    )
    assert scores[0]["video"] == usual[0]["video"] == "shore.mp4"
    assert scores[0]["score"] != usual[0]["score"]


def test_files_are_written_and_not_overwritten(library, film, tmp_path):
    names = {kind: tmp_path / f"out.{kind}" for kind in ("html", "edl", "fcpxml", "srt")} | {
        "run": tmp_path / "run.jsonl"
    }
    arguments = [part for kind, path in names.items() for part in (f"--{kind}", path)]
    result = search(library, "dog beach", "-k", 2, *arguments)
    assert all(path.stat().st_size for path in names.values())
    assert f"wrote {names['edl']}" in result.stderr
    with pytest.raises(Exception, match="already exists"):
        search(library, "dog beach", "--edl", names["edl"])
    nothing = search(library, "dog in:nowhere*", "--srt", tmp_path / "none.srt")
    assert "no file was written" in nothing.stderr
    assert not (tmp_path / "none.srt").exists()


def test_draws_images_if_the_terminal_supports_them(library, film):
    from momentseek.api.library import Library

    with Library.open(library) as opened:
        (hit,) = opened.search("dog beach", k=1)
        picture = opened.thumbnail(hit)
        assert opened.thumbnail(hit) == picture
        film.unlink()
        assert opened.thumbnail(hit) == picture  # kept, so an unplugged drive still shows
    kitty, iterm = (terminal_images.draw_picture(picture, kind) for kind in ("kitty", "iterm"))
    assert kitty.startswith("\x1b_Ga=T,f=100,r=6,m=")
    assert kitty.endswith("\x1b\\")
    assert iterm.startswith("\x1b]1337;File=inline=1;")


def test_names_and_words_cannot_control_the_terminal(tmp_path):
    evil = "\x1b[2Jshore\u202e.mp4"
    cues = {evil: [Cue(0.0, 3.0, "a dog\x1b]0;title\x07 here")]}
    films = {f"o{i}.mp4": small.nothing(24, i) for i in range(6)} | {evil: small.nothing(10, 3)}
    catalog = small.fill(tmp_path, films, cues)
    with catalog.changes():
        catalog.set("encoder", "words")
    catalog.close()
    result = search(tmp_path, "said:dog")
    assert "dog" in result.stdout
    assert not set(result.stdout) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize("arguments", [["-dog"], ["-kitchen", "dog"], ["-lake", "dog"], ["dog", "-said:x"], ["-2:dog"]])
def test_query_with_a_leading_minus_is_not_an_option(library, arguments):
    result = search(library, *arguments)
    assert result.exit_code == 2
    assert "write -- before the query" in result.stderr
    assert result.stdout == ""


def test_short_options_may_include_their_value(library):
    assert len(search(library, "-k1", "dog beach", "--all").stdout.splitlines()) == 2
    assert "shore.mp4" in search(library, "-k", 3, "--", "dog beach", "-cat").stdout
    assert "shore.mp4" in CliRunner().invoke(cli, ["search", f"-l{library}", "dog beach"]).stdout


def test_padded_subtitles_fit_the_padded_edit_list(library, tmp_path):
    from edit_list_reader import read_edl

    from momentseek.media.subtitles.read import read_subtitles

    edl, srt = tmp_path / "out.edl", tmp_path / "out.srt"
    search(library, "dog beach", "--all", "-k", 3, "--pad", 2, "--edl", edl, "--srt", srt)
    edits = read_edl(edl.read_text()).edits
    cues = read_subtitles(srt)
    assert len(cues) == len(edits) == 3
    for cue, edit in zip(cues, edits, strict=True):
        assert cue.end - cue.start == pytest.approx((edit.end - edit.start) / 25, abs=0.002)


def test_failed_opening_is_reported(library, film, monkeypatch, tmp_path):
    opener = tmp_path / "xdg-open"
    monkeypatch.setattr(player.player_command, "__defaults__", (lambda name: None, "linux"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match="no player was found; install mpv or VLC"):
        search(library, "dog beach", "--open")
    opener.write_text("#!/bin/sh\nexit 3\n")
    opener.chmod(0o755)
    with pytest.raises(Exception, match=r"nothing was opened: .* \(exit code 3\)"):
        search(library, "dog beach", "--open")
    opener.write_text("#!/bin/sh\nexit 0\n")
    assert "opened from the beginning" in search(library, "dog beach", "--open").stderr


def test_localisers_of_trained_models_need_one(library):
    for name in ("learned", "map"):
        with pytest.raises(Exception, match=f"the localiser '{name}' needs a library"):
            search(library, "dog beach", "--localiser", name)
    with pytest.raises(Exception, match="there is no localiser 'scene'; did you mean 'scenes'"):
        search(library, "dog beach", "--localiser", "scene")


def test_more_like_a_moment(library):
    first = search(library, "--like", "shore.mp4@0:18", "--all", "-k", 3).stdout.splitlines()[1:]
    assert len(first) == 3
    assert not any("shore.mp4" in line and "0:15" in line for line in first)
    for wrong, why in (
        ("shore.mp4@9:03", r"shore.mp4: ends at .* s, so there is nothing at 543 s; name an earlier time"),
        ("shore.mp4", "names no moment"),
        ("none.mp4@3", "is no video of the library"),
    ):
        with pytest.raises(Exception, match=why):
            search(library, "--like", wrong)
    with pytest.raises(Exception, match="takes no words"):
        search(library, "--like", "shore.mp4@18", "a", "dog")
    assert "exclude each other" in search(library, "--like", "a@1", "--image", "b.png").stderr
    with pytest.raises(Exception, match=r"none.png: does not exist"):
        search(library, "--image", library / "none.png")


def test_unsharded_library_is_refused_on_a_cluster(library):
    with pytest.raises(MomentseekError, match=r"is no library in shards.*momentseek shard"):
        search(library, "dog", "--on", "local")
