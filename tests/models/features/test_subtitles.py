from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import SubtitleLine, read_subtitles


def test_lines_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    file.write_text(
        '{"vid_name": "a", "sub": [{"text": "two", "start": 2, "end": 3}, {"text": "one", "start": 0.5, "end": 1}]}\n'
        '{"vid_name": "b", "sub": []}\n'
    )
    lines = (SubtitleLine(0.5, 1, "one"), SubtitleLine(2, 3, "two"))
    assert read_subtitles(file) == {"a": lines, "b": ()}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"video": "a", "sub": []}', "line 1 names no video"),
        ('{"vid_name": "a"}', "line 1 has no list of subtitles"),
        ('{"vid_name": "a", "sub": [{"text": "x", "start": null, "end": 1}]}', "without text or times"),
        ('{"vid_name": "a", "sub": []}\n{"vid_name": "a", "sub": []}', "has the video a twice"),
        ("[]", "holds no subtitles"),
    ],
)
def test_what_is_no_subtitle_file_is_said(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "said.jsonl"
    file.write_text(text)
    with pytest.raises(MomentseekError, match=what):
        read_subtitles(file)
