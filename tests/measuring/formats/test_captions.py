"""Files of captions: TVC's, COCO's, and truths whose queries describe moments."""

from __future__ import annotations

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, read_captions
from momentseek.measuring.formats.convert import convert


def test_tvc_predictions_may_have_ids_and_captions_alone(write):
    lines = b'{"clip_id": 7, "descs": [{"desc": "a dog"}, {"desc": "a cat"}]}\n{"clip_id": 8, "descs": []}'
    table = read_captions(write("predictions.jsonl", lines))
    assert table.groups() == [("a dog", "a cat"), ()]
    assert table.moments("7") == []
    assert FORMATS["tvc"].to_bytes(table) == lines


def test_truths_are_references(samples, write):
    for name, caption in {
        "tvr": "A lamp falls.",
        "activitynet": "A lamp.",
        "charades-sta": "a person lights a lamp.",
        "qvhighlights": "A boat turns.",
    }.items():
        table = read_captions(write(*samples[name]))
        assert table.captions[0] == caption
        assert len(table.captions) == len(table)
        assert table.moments(table.query_ids[0])


def test_captions_of_another_kind_of_file(samples, write):
    with pytest.raises(MomentseekError, match="not recognised as captions; it looks like momentseek's own predictions"):
        read_captions(write(*samples["native-run"]))
    with pytest.raises(MomentseekError, match="holds no captions"):
        read_captions(write(*samples["video-corpus"]), format="video-corpus")


def test_a_truth_can_be_written_as_captions(samples, write, tmp_path):
    done = convert(write(*samples["activitynet"]), tmp_path / "captions.jsonl", to="tvc")
    assert (done.read_as, done.written_as, done.lost) == ("activitynet", "tvc", ())
    assert read_captions(tmp_path / "captions.jsonl").of("v_lamp:1") == (" Two.",)
    done = convert(tmp_path / "captions.jsonl", tmp_path / "captions.json", to="coco-captions")
    assert done.lost == ("videos and times",)
    with pytest.raises(MomentseekError, match=r"tvc has exactly one moment per clip_id, but .* has 2 for 21"):
        convert(write(*samples["qvhighlights"]), tmp_path / "other.jsonl", to="tvc")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ('[{"clip_id": 1, "descs": [{"text": "a"}]}]', "record 1 has no 'desc'"),
        ('[{"clip_id": 1, "descs": [{"desc": null}]}]', "'desc' of record 1 is null; expected text"),
        ('[{"clip_id": 1, "descs": []}, {"clip_id": 1, "descs": []}]', "moment 1 occurs more than once"),
        ('[{"clip_id": 1, "descs": [], "ts": [0, 1]}]', "record 1 has no 'vid_name'"),
        ('[{"image_id": 1, "caption": 5}]', "'caption' of record 1 is 5; expected text"),
        (
            '{"images": [{"id": 1}], "annotations": [{"image_id": 2, "caption": "a"}]}',
            "image 2 has a caption, but is not among its images",
        ),
        (
            '{"images": [{"id": 1}, {"id": 1}], "annotations": [{"image_id": 1, "caption": "a"}]}',
            "an image is listed more than once",
        ),
    ],
)
def test_what_is_wrong_with_captions_is_said(write, data, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        read_captions(write("file.json", data))
