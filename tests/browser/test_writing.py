from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from momentseek.library.catalog import Catalog
from momentseek.library.database import OCR
from momentseek.library.timed_text import Maker, finish_track
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, merge_lines


def test_text_on_screen_is_boxed_and_listed_next_to_the_player(
    serving: Callable[..., Any], open_page: Callable[..., Any], demo: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo / "library", tmp_path / "library")
    with closing(Catalog(tmp_path / "library")) as catalog, catalog.changes():
        video = catalog.videos()[0]
        line = OcrLine("Harbour master", Box(0.25, 0.5, 0.5, 0.1), 0.9)
        cues = merge_lines([OcrFrame(0.0, 4.0, 2.0, (line,))])
        finish_track(catalog, OCR, video.id, Maker("ppocr-small", "print"), video.duration, cues)
    page = open_page(f"{serving(tmp_path / 'library').address}#q=text:harbor")
    page.wait_for_selector(".picture .boxes i")
    assert page.locator(".hit .written").inner_text().split("\n")[0] == "Written (read by a machine):"
    assert page.locator(".hit .written mark").all_inner_texts() == ["Harbour"]
    picture, box = (page.locator(place).first.bounding_box() for place in (".picture", ".picture .boxes i"))
    assert abs(box["x"] + box["width"] / 2 - picture["x"] - picture["width"] / 2) < 2
    assert picture["y"] + picture["height"] * 0.4 < box["y"] < picture["y"] + picture["height"] * 0.6
    page.locator("a.moment").first.click()
    panel = page.locator("section.panel.written")
    panel.get_by_text("Harbour master").wait_for()
    assert "Read from the pictures automatically (ppocr-small)" in panel.inner_text()
    assert "Harbour master" in panel.inner_text()
    assert page.locator("section.transcript .line", has_text="Harbour").count() == 0
