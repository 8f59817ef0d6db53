"""The second encoder of a library looks at its videos once the first has, whatever happens in between."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import threading
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from processes import start_momentseek

from momentseek.benchmarks.datasets.library_features import write_library_features
from momentseek.core.errors import MomentseekError
from momentseek.library.database import PICTURES
from momentseek.library.encoders import DEFAULT_ENCODER
from momentseek.library.kept_pictures import MIN_SAME_SCENE, choose_clips
from momentseek.library.merging import proven_videos
from momentseek.library.report import AddInterrupted, BackgroundStep
from momentseek.library.segments import SEGMENT_SUFFIX, vectors_of
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import PendingVideo, track_counts
from momentseek.library.tracks import second_pass
from momentseek.library.tracks.background import PassRequest
from momentseek.library.tracks.second_pass import SecondPass
from momentseek.recognition.encoders.clip import ClipEncoder
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.minilm import load_minilm
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.weights.files import are_installed, models_folder, packaged_weights
from momentseek.recognition.weights.files import locate as locate_weights

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
BOTH = "colours+shades"
Film = Callable[..., Path]
Content = Callable[[LibraryStore], dict[str, Any]]


@pytest.fixture
def both(light: ModuleType, tmp_path: Path) -> Iterator[LibraryStore]:
    """An empty library with two encoders."""
    with LibraryStore.open(tmp_path / "library", create=True, encoder=BOTH) as opened:
        yield opened


def rows(library: LibraryStore) -> dict[str, np.ndarray]:
    state = library.snapshot()
    found = {video.name: vectors_of(state.vision, video.id) for video in library.videos()}
    return {name: one for name, one in found.items() if one is not None}


def filled(library: LibraryStore) -> dict[str, bool]:
    """Which videos the second encoder has seen, by their rows."""
    fused = library.encoders.fused
    assert fused is not None
    return {name: bool(fused.is_filled(one).all()) for name, one in rows(library).items()}


def once_through(library: LibraryStore) -> AddInterrupted:
    """Stop an ``encode`` after the first part."""
    with pytest.raises(AddInterrupted) as stopped:
        library.encode()
    return stopped.value


def test_clips_that_show_the_same_share_a_picture() -> None:
    still = np.repeat([[1.0, 0.0]], 30, axis=0).astype(np.float32)
    assert choose_clips(still, 1.5).tolist() == [0, 14, 28]  # every 20 seconds at the latest
    turning = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0, 1.5, 20)], np.float32)
    chosen = choose_clips(turning, 1.5)
    steps = [float(turning[a] @ turning[b]) for a, b in itertools.pairwise(chosen)]
    assert max(steps) < MIN_SAME_SCENE < min(float(turning[c] @ turning[c + 1]) for c in chosen[:-1])
    assert choose_clips(still[:0], 1.5).tolist() == []


def test_both_encoders_see_what_is_added(both: LibraryStore, films: Path, light: ModuleType) -> None:
    steps: list[Any] = []
    report = both.add(films, progress=steps.append)
    assert (report.added, report.seen) == (3, 3)
    assert report.pictures == 6  # of 12 clips: one for each scene
    assert "3 videos encoded by both encoders" in str(report)
    assert any(isinstance(step, BackgroundStep) and step.what == "encoding by shades" for step in steps)
    assert both.verify().problems == []
    fused = both.encoders.fused
    assert fused is not None
    for one in rows(both).values():
        assert np.linalg.norm(one, axis=1) == pytest.approx(1, abs=2e-3)
    deep = rows(both)["deep/c.mkv"]
    first, second = fused.split(deep)
    blue = fused.second.encode(["blue"])[0]
    assert (second @ blue).argmax() in (2, 3)  # green, blue, red: two clips each
    assert [float(s @ blue) for s in second[::2]] == pytest.approx([float(s @ blue) for s in second[1::2]], abs=1e-3)
    assert (first @ fused.first.encode(["green"])[0]).argmax() in (0, 1)
    again = both.add(films)
    assert (again.unchanged, again.seen, again.pictures) == (3, 0, 0)


def test_the_second_pass_can_be_left_for_later(both: LibraryStore, films: Path, content: Content) -> None:
    both.options = replace(both.options, second_pass=False)
    assert both.add(films).seen == 0
    assert not any(filled(both).values())
    assert both.verify().problems == []  # rows that wait for it are no fault
    assert (both.status().seen, both.status().unseen) == (0, 3)
    assert both.encode(["b*"]).seen == 1
    assert filled(both) == {"a.mp4": False, "b.mp4": True, "deep/c.mkv": False}
    both.options = replace(both.options, second_pass=True)
    assert both.add(films).seen == 2
    assert all(filled(both).values())
    assert (both.status().seen, both.status().unseen) == (3, 0)
    with LibraryStore.open(both.path.parent / "whole", create=True, encoder=BOTH) as whole:
        whole.add(films)
        assert content(whole) == content(both)


def test_features_are_not_written_of_half_of_the_vectors(both: LibraryStore, films: Path, tmp_path: Path) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    with pytest.raises(MomentseekError, match="3 videos wait for shades"):
        write_library_features(both, {}, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    both.encode()
    assert write_library_features(both, {}, tmp_path / "data").videos == 3


def test_without_its_weights_the_first_works_alone(
    both: LibraryStore, films: Path, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(light.Shades, "ready", False)
    report = both.add(films)
    assert report.added == 3
    (note,) = [note for note in report.notes if "shades" in note]
    assert "momentseek models get" in note
    assert not any(filled(both).values())
    with pytest.raises(MomentseekError, match="weights of shades are not installed"):
        both.encode()
    monkeypatch.setattr(light.Shades, "ready", True)
    report = both.add(films)
    assert (report.unchanged, report.seen, report.notes) == (3, 3, [])
    assert all(filled(both).values())


def test_a_library_with_one_encoder_says_how_to_get_two(library: LibraryStore, films: Path) -> None:
    library.add(films)
    assert library.status().unseen == 0
    with pytest.raises(MomentseekError, match=r"has one encoder, colours.*momentseek reencode"):
        library.encode()


def test_encoded_pictures_are_not_encoded_again_after_an_interrupt(
    both: LibraryStore, tmp_path: Path, film: Film, content: Content, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = film(tmp_path / "long.mp4", *[RED, GREEN, BLUE] * 3, seconds=3)
    with LibraryStore.open(tmp_path / "whole", create=True, encoder=BOTH) as whole:
        whole.add(path)
        want = content(whole)
    monkeypatch.setattr(second_pass, "PART_PICTURES", 2)
    both.options = replace(both.options, second_pass=False)
    both.add(path)
    real = second_pass.TrackPart
    made: list[float] = []

    def part(done: float, *rest: Any) -> Any:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(done)
        return real(done, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(second_pass, "TrackPart", part)
        once_through(both)
    assert made == [6.0, 12.0]
    assert not filled(both)["long.mp4"]  # nothing is searched before it is whole
    light.Shades.pictures = 0
    report = both.encode()
    assert (report.seen, report.seen_seconds) == (1, 15.0)
    assert light.Shades.pictures == 5
    assert content(both) == want


def test_no_thread_computes_after_an_interrupt(
    both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    second = both.encoders.fused.second
    real, begun, ended = second.encode_images, threading.Event(), threading.Event()

    def slowly(images: Any) -> Any:
        begun.set()
        time.sleep(0.5)
        found = real(images)
        ended.set()
        return found

    def interrupt(*_: object) -> None:
        assert begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(second, "encode_images", slowly)
    monkeypatch.setattr(SecondPass, "take_answers", interrupt)
    once_through(both)
    assert ended.is_set()
    assert not [one for one in threading.enumerate() if one.name.startswith("encoding by")]


def test_newest_first_and_of_these_shortest(
    both: LibraryStore, tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.options = replace(both.options, second_pass=False)
    for name, seconds in (("old", 1), ("long", 4), ("short", 2)):
        both.add(film(tmp_path / f"{name}.mp4", RED, seconds=seconds))
    with both.catalog.changes():
        both.catalog.run("UPDATE videos SET added = added - 7200 WHERE name = 'old.mp4'")
    names: list[str] = []
    real = SecondPass.work
    monkeypatch.setattr(SecondPass, "work", lambda self, video: names.append(video.name) or real(self, video))
    assert both.encode().seen == 3
    assert names == ["short.mp4", "long.mp4", "old.mp4"]


def test_a_recording_of_sound_does_not_wait(both: LibraryStore, films: Path) -> None:
    with wave.open(str(films / "talk.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 8000))
    report = both.add(films)
    assert (report.added, report.seen, report.noted) == (4, 3, [])
    assert (both.status().seen, both.status().unseen, both.status().unseeable) == (3, 0, 0)


def test_large_segments_are_rewritten_less_often(
    both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    joins: list[float] = []
    real, clock = SecondPass.join, [0.0]

    def join(self: SecondPass) -> None:
        joins.append(clock[0])
        real(self)
        self._join_seconds = 2.0  # as long as it takes in a large library

    monkeypatch.setattr(SecondPass, "join", join)
    monkeypatch.setattr(second_pass, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    one = SecondPass(PassRequest(both), both.encoders.fused)  # type: ignore[arg-type]
    video = PendingVideo(0, films / "a.mp4", "a.mp4", 3.0, 1, 1)
    for clock[0] in (5.0, 11.0, 22.0, 45.0, 60.0):  # after 10 seconds, then when 20 times as long has passed
        one.finish_video(video)
    assert joins == [11.0, 60.0]


def test_a_copy_gets_the_vectors_of_both(both: LibraryStore, films: Path, light: ModuleType) -> None:
    both.add(films)
    light.Shades.pictures = 0
    shutil.copy(films / "a.mp4", films / "twin.mp4")
    report = both.add(films)
    assert (report.copied, light.Shades.pictures) == (1, 0)
    assert filled(both)["twin.mp4"]
    np.testing.assert_array_equal(rows(both)["twin.mp4"], rows(both)["a.mp4"])
    assert track_counts(both.catalog, PICTURES).done == 4


def test_a_changed_file_is_not_mixed_with_what_it_was(both: LibraryStore, films: Path, film: Film) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    film(films / "a.mp4", BLUE, seconds=5)
    report = both.encode()
    assert report.seen == 2
    assert [note.text for note in report.noted if "has changed since it was added" in note.text]
    assert (both.status().seen, both.status().unseeable, both.status().unseen) == (2, 1, 0)
    both.options = replace(both.options, second_pass=True)
    assert (both.add(films).changed, all(filled(both).values())) == (1, True)
    assert both.status().unseeable == 0


def test_a_video_that_goes_while_it_is_looked_at(
    both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    real = SecondPass.finish_video

    def finish(self: SecondPass, video: Any) -> None:
        real(self, video)
        with self.library.catalog.changes():
            if known := [one for one in self.library.videos() if one.name == "b.mp4"]:
                self.library.catalog.remove_video(known[0].id)

    monkeypatch.setattr(SecondPass, "finish_video", finish)
    assert both.encode().seen == 2
    assert filled(both) == {"a.mp4": True, "deep/c.mkv": True}
    assert both.verify().problems == []


def test_an_older_library_is_widened_and_then_seen(
    library: LibraryStore, films: Path, content: Content, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    with monkeypatch.context() as patch:
        patch.setattr(light.Colours, "encode_images", lambda *_: pytest.fail("nothing is encoded twice"))
        report = library.reencode(BOTH)
    assert (report.unchanged, report.seen, report.notes) == (3, 3, [])
    assert library.status().encoders[0].spec == BOTH
    assert library.verify().problems == []
    found = content(library)
    with LibraryStore.open(library.path.parent / "whole", create=True, encoder=BOTH) as whole:
        whole.add(films)
        assert content(whole) == found


def test_widening_goes_on_where_it_was_stopped(
    library: LibraryStore, films: Path, light: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    with monkeypatch.context() as patch:
        patch.setattr(SecondPass, "take_answers", _interrupt)
        with pytest.raises(AddInterrupted):
            library.reencode(BOTH)
    assert (library.status().unseen, library.status().reencoding) == (3, None)
    monkeypatch.setattr(light.Colours, "encode_images", lambda *_: pytest.fail("nothing is encoded twice"))
    assert library.reencode(BOTH).seen == 3
    assert all(filled(library).values())


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_from_another_encoder_both_see_everything_again(library: LibraryStore, films: Path) -> None:
    library.add(films)
    assert library.reencode("colours-2+shades").seen == 3
    assert all(filled(library).values())
    library.reencode("colours")  # and back
    assert library.status().unseen == 0
    assert library.verify().problems == []


def _damage(library: LibraryStore, name: str) -> Path:
    """Turn a bit of a video's vectors."""
    video = next(video for video in library.videos() if video.name == name)
    state = library.snapshot()
    place = next(s for s in state.vision if video.id in s.ids)
    path = library.paths.segments / f"{place.name}{SEGMENT_SUFFIX}"
    at = int(np.flatnonzero(place.ids == video.id)[0])
    row = place.half[place.offsets[at]].tobytes()
    data = bytearray(path.read_bytes())
    found = data.find(row)
    assert found > 0
    data[found] ^= 1
    path.write_bytes(bytes(data))
    library._snapshot = None
    return path


def test_damaged_vectors_are_not_hidden_by_a_rewrite(both: LibraryStore, films: Path) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    path = _damage(both, "a.mp4")
    before = path.read_bytes()
    report = both.encode()
    assert report.seen == 0
    assert "a.mp4" in report.notes[0]
    assert "momentseek verify --repair" in report.notes[0]
    assert path.read_bytes() == before
    assert both.status().unseen == 3  # they wait, and what was made of them is kept
    both.verify(repair=True)
    both.options = replace(both.options, second_pass=True)
    both.retry()
    assert all(filled(both).values())
    assert len(filled(both)) == 3
    assert both.verify().problems == []


def test_damage_during_the_pass_is_found_too(both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    real = SecondPass.join

    def join(self: SecondPass) -> None:
        _damage(both, "deep/c.mkv")
        real(self)

    monkeypatch.setattr(SecondPass, "join", join)
    assert "deep/c.mkv" in both.encode().notes[0]
    (held,) = both.snapshot().vision
    assert proven_videos(held).tolist() == [True, True, False]


def test_a_segment_that_cannot_be_read_costs_its_own_videos_only(both: LibraryStore, films: Path) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films / "deep")
    (old,) = both.snapshot().vision
    both.add(films / "a.mp4")
    assert len(both.snapshot().vision) == 2
    (both.paths.segments / f"{old.name}{SEGMENT_SUFFIX}").write_bytes(b"gone")
    report = both.encode()
    assert report.seen == 1
    assert ["its vectors are missing or damaged" in note.text for note in report.noted] == [True]
    both.verify(repair=True)
    both.options = replace(both.options, second_pass=True)
    both.retry()
    assert list(filled(both).values()) == [True, True]


def test_another_process_sees_each_video_before_or_after(
    both: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.options = replace(both.options, second_pass=False)
    both.add(films)
    monkeypatch.setattr(second_pass, "JOIN_SECONDS", 0.0)
    monkeypatch.setattr(second_pass, "MAX_JOIN_SHARE", 1e9)
    seen: list[int] = []
    with LibraryStore.open(both.path) as reader:
        real = SecondPass.join

        def join(self: SecondPass) -> None:
            real(self)
            seen.append(sum(filled(reader).values()))
            assert reader.status().seen == seen[-1]

        monkeypatch.setattr(SecondPass, "join", join)
        both.encode()
    assert seen == [1, 2, 3, 3]


def test_an_older_library_with_damage_is_not_widened(library: LibraryStore, films: Path) -> None:
    library.add(films)
    _damage(library, "a.mp4")
    with pytest.raises(MomentseekError, match="momentseek verify --repair"):
        library.reencode(BOTH)
    assert library.status().encoders[0].spec == "colours"


@pytest.mark.slow
def test_clip_encodes_videos_added_before_its_weights_were_installed(
    tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not image_text_encoder(DEFAULT_ENCODER).ready:  # type: ignore[attr-defined]
        pytest.skip("CLIP's weights are not here")
    path = film(tmp_path / "film.mp4", RED, GREEN, seconds=2)
    with LibraryStore.open(tmp_path / "library", create=True, encoder=DEFAULT_ENCODER) as library:
        with monkeypatch.context() as patch:
            patch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "empty"))
            report = library.add(path)
            assert [note for note in report.notes if "the weights of CLIP are not installed" in note]
            assert library.status().second_encoder == "CLIP"
        assert filled(library) == {"film.mp4": False}
        assert library.add(path).seen == 1
        assert filled(library) == {"film.mp4": True}
        assert library.verify().problems == []


@pytest.mark.slow
def test_exchanged_weights_are_refused_and_the_first_encoder_works(
    tmp_path: Path, film: Film, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset = packaged_weights("clip")
    if not are_installed(asset):
        pytest.skip("CLIP's weights are not here")
    (name,) = asset.files
    data = bytearray((locate_weights(asset) / name).read_bytes())
    data[len(data) // 2] ^= 1
    shutil.copytree(models_folder(), tmp_path / "models", copy_function=os.symlink)
    monkeypatch.setenv("MOMENTSEEK_MODELS", str(tmp_path / "models"))
    (asset.kept / name).unlink()
    (asset.kept / name).write_bytes(data)
    with LibraryStore.open(tmp_path / "library", create=True, encoder=DEFAULT_ENCODER) as library:
        monkeypatch.setattr(
            library.encoders, "_vision", FusedEncoder(image_text_encoder("things"), ClipEncoder(load_minilm()))
        )
        report = library.add(film(tmp_path / "film.mp4", RED, seconds=2))
        assert (report.added, report.seen) == (1, 0)
        assert [note for note in report.notes if "its SHA-256 differs" in note]
        assert library.status().unseen == 1


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def run_process(*arguments: object, kill_after: float | None = None) -> int:
    """The exit code of the command in a process of its own; minus 9 if it was killed when its time was over."""
    process = start_momentseek(*arguments, light=True, env={**os.environ, "LIGHT_SLOW": "0.01"})
    timer = threading.Timer(kill_after or 0, _kill, (process.pid,))
    if kill_after is not None:
        timer.start()
    try:
        process.communicate()
        return process.returncode
    finally:
        timer.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("times", [4, pytest.param(50, marks=pytest.mark.figures)])
@pytest.mark.parametrize("old", [False, True], ids=["new", "upgraded"])
def test_kill_at_any_instant_does_not_change_the_result_of_both_passes(
    times: int, old: bool, tmp_path: Path, film: Film, light: ModuleType, content: Content
) -> None:
    films = tmp_path / "films"
    films.mkdir()
    for i in range(5):
        film(films / f"{i}.mp4", RED, (20 * i, 200, 0), BLUE, seconds=1 + i % 3)
    film(films / "long.mp4", *[RED, GREEN, BLUE] * 4, seconds=2)
    grid = ("--clip-seconds", "0.5", "--encoder")
    whole, before = tmp_path / "whole", tmp_path / "before"
    assert run_process("add", films, "--library", before, *grid, "colours") == 0
    begun = time.monotonic()
    assert run_process("add", films, "--library", whole, *grid, BOTH) == 0
    length = time.monotonic() - begun
    with LibraryStore.open(whole) as library:
        want = content(library)
        assert all(filled(library).values())
        widths = {name: one.tolist() for name, one in rows(library).items()}
    words = ("reencode", "--encoder", BOTH) if old else ("add", films, *grid, BOTH)
    chance = random.Random(7)
    kills = between = 0
    while kills < times:
        folder = tmp_path / f"killed-{kills}"
        if old:
            shutil.copytree(before, folder)
        while (code := run_process(*words, "--library", folder, kill_after=chance.uniform(0.1, length))) != 0:
            assert code == -signal.SIGKILL
            kills += 1
            try:
                library = LibraryStore.open(folder, create=False)
            except MomentseekError:
                continue  # killed before the catalog's first transaction
            with library:
                assert library.verify().problems == []
                if library.status().encoders and library.status().encoders[0].spec == BOTH:
                    seen = filled(library)
                    between += 0 < sum(seen.values()) < len(want)
                    done = library.status().seen
                    assert done == sum(seen.values())
                    assert all(rows(library)[name].tolist() == widths[name] for name in seen if seen[name])
        with LibraryStore.open(folder) as library:
            assert library.verify().clean
            assert content(library) == want
        shutil.rmtree(folder)
    assert between > 0 or times < 50
