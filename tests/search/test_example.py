"""More like this: what looks like the example comes first, and never the example itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import small_library as small
from PIL import Image

from momentseek import Library, Moment
from momentseek.core.errors import MomentseekError
from momentseek.media.pixels import LONG_SIDE, read_picture
from momentseek.recognition.encoders import registry

DOG = (240, 10, 10)


class SeeingWords(small.WordVectors):
    """An encoder for which a red picture shows a dog on a beach."""

    short_side = 8

    def encode_images(self, images):
        return self.encode(["dog beach" if image[..., 0].mean() > 128 else "kitchen" for image in images])


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.IMAGE_TEXT_ENCODERS, "seeing", SeeingWords)
    films = {f"other{i}.mp4": small.nothing(24, i) for i in range(12)}
    for seed, name in enumerate(("shore.mp4", "pier.mp4")):
        dog = small.film([("dog beach", 6)], seed=seed)
        films[name] = np.concatenate([small.nothing(10, 100 + seed), dog, small.nothing(14, 200 + seed)])
    catalog = small.fill(tmp_path / "library", films, {})
    with catalog.changes():
        catalog.set("encoder", "seeing")
    catalog.close()
    with Library.open(tmp_path / "library") as opened:
        yield opened


def picture(colour, size=(40, 30), kind="PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, kind)
    return out.getvalue()


def test_what_looks_like_a_hit_is_found_and_not_the_hit(library):
    hit = next(h for h in library.search("dog beach") if h.name == "shore.mp4")
    found = library.more_like(hit)
    assert (found[0].name, found[0].level) == ("pier.mp4", "strong")
    assert found[0].start < 20 < found[0].end
    assert set(found[0].streams) == {"vision"}
    assert not any(h.name == "shore.mp4" and h.start < hit.end and hit.start < h.end for h in found)
    assert not library.more_like(hit, where="in:other*", group="video")


def test_a_time_stands_for_its_clip(library):
    found = library.more_like(Moment("shore.mp4", 18.0, 18.001), k=1)
    assert found[0].name == "pier.mp4"
    with pytest.raises(MomentseekError, match=r"none.mp4: is no video of the library"):
        library.more_like(Moment("none.mp4", 1, 2))
    with pytest.raises(MomentseekError, match="a search by example takes no words"):
        library.more_like(Moment("shore.mp4", 1, 2), where="a dog")


def test_a_picture_finds_what_it_shows(library, tmp_path):
    found = library.search_picture(picture(DOG))
    assert {h.name for h in found[:2]} == {"shore.mp4", "pier.mp4"}
    (tmp_path / "dog.jpg").write_bytes(picture(DOG, kind="JPEG"))
    assert [h.moment for h in library.search_picture(tmp_path / "dog.jpg")] == [h.moment for h in found]
    assert library.search_picture(picture((0, 0, 250)), k=1, all=True)[0].moment != found[0].moment


def test_pictures_are_upright_and_bounded(tmp_path):
    assert max(read_picture(picture(DOG, (3000, 20))).shape) == LONG_SIDE
    turned = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 30)).save(turned, "JPEG", exif=exif)
    assert read_picture(turned.getvalue()).shape == (40, 30, 3)
    vast = picture(DOG).replace((40).to_bytes(4, "big") + (30).to_bytes(4, "big"), b"\x00\x01\x00\x00" * 2, 1)
    for data in (b"", b"not a picture", picture(DOG)[:60], vast):
        with pytest.raises(MomentseekError, match="the picture: "):
            read_picture(data)
    with pytest.raises(MomentseekError, match="does not exist"):
        read_picture(Path(tmp_path / "none.png"))
