"""Files are loaded safely, or a one-sentence error says why not."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading
import tracemalloc
import zlib

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_runs, read_truth
from momentseek.measuring.formats.document import open_document

LINE = b'{"vid_name": "a", "duration": 9.0, "ts": [0, 1], "desc": "x", "type": "v", "desc_id": 1}'


def test_gzip_is_recognised_by_content(tmp_path):
    path = tmp_path / "truth.jsonl"
    path.write_bytes(gzip.compress(LINE))
    assert len(read_truth(path)) == 1


def test_several_gzip_members_are_one_file(tmp_path):
    path = tmp_path / "truth.jsonl.gz"
    path.write_bytes(gzip.compress(LINE + b"\n") + gzip.compress(LINE.replace(b'"desc_id": 1', b'"desc_id": 2')))
    assert read_truth(path).query_ids == ("1", "2")


def test_cut_off_gzip(tmp_path):
    path = tmp_path / "truth.jsonl.gz"
    path.write_bytes(gzip.compress(LINE * 100)[:-12])
    with pytest.raises(MomentseekError, match="ends too early; the file is cut off"):
        read_truth(path)


def test_damaged_gzip(tmp_path):
    data = bytearray(gzip.compress(bytes(range(256)) * 50))
    data[40:60] = b"\xff" * 20
    path = tmp_path / "truth.jsonl.gz"
    path.write_bytes(bytes(data))
    with pytest.raises(MomentseekError, match="damaged gzip data"):
        read_truth(path)


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path):
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)  # 16 MB that can be repeated
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(b"\x1f\x8b\x08" + bytes(7) + block * 320)
    assert path.stat().st_size < 6_000_000  # of 5 GB
    tracemalloc.start()
    try:
        with pytest.raises(MomentseekError, match="decompression bomb"):
            read_truth(path)
        assert tracemalloc.get_traced_memory()[1] < 300_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("data", [b"", b"  \n\n", gzip.compress(b"", mtime=0)])
def test_empty_files(tmp_path, data):
    path = tmp_path / "empty.json"
    path.write_bytes(data)
    with pytest.raises(MomentseekError, match="the file is empty"):
        open_document(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(MomentseekError, match=r"cannot be read .*; check the path"):
        read_truth(tmp_path / "nowhere.json")
    with pytest.raises(MomentseekError, match="cannot be read"):
        read_truth(tmp_path)


def test_a_cut_off_line_is_named(write):
    path = write("truth.jsonl", LINE + b"\n" + LINE + b"\n" + LINE[:40])
    with pytest.raises(MomentseekError, match=r"line 3 is not valid JSON .*; is the file cut off\?"):
        read_truth(path)


def test_cut_off_json(write):
    with pytest.raises(MomentseekError, match=r"not valid JSON .* is the file cut off\?"):
        read_runs(write("run.json", b'{"1": [{"video_name": "a", "timest'))


def test_nan_is_read_so_that_the_message_can_name_the_query(write):
    path = write("run.json", b'{"7": [{"video_name": "a", "timestamp": [NaN, 2.0], "model_scores": 1}]}')
    with pytest.raises(MomentseekError, match=r"not finite numbers found .*query 7, rank 1"):
        read_runs(path)


def test_text_that_is_not_utf8(write):
    with pytest.raises(MomentseekError, match=r"not UTF-8 text \(byte 12\)"):
        read_truth(write("sta.txt", b"LAMP1 0 5##a\n\xff\xfe"[:12] + b"\xff"))


def test_a_byte_order_mark_is_no_obstacle(write):
    assert read_truth(write("sta.txt", b"\xef\xbb\xbfLAMP1 0 5##a\n")).query_ids == ("LAMP1:0",)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"NaN",
        b'{"a": 1}\n' + b"[" * 100_000,
        b"[" * 100_000 + b"\n" + b"]" * 100_000,
        b'{"query_id": "\\ud800", "video": "a", "start": NaN, "end": 1}\n{"query_id": "b"}',
    ],
)
def test_hostile_json(write, data):
    with pytest.raises(MomentseekError, match="not valid JSON"):
        read_truth(write("hostile.json", data))


def test_a_byte_order_mark_before_json(write):
    value = b'\xef\xbb\xbf{"7": [{"video_name": "a", "timestamp": [0, %s], "model_scores": 1}]}'
    assert read_runs(write("run.json", value % b"2"))[0].query_ids == ("7",)
    assert len(read_truth(write("t.jsonl", b"\xef\xbb\xbf" + LINE + b"\n" + LINE.replace(b": 1}", b": 2}")))) == 2
    with pytest.raises(MomentseekError, match="not finite numbers"):
        read_runs(write("run.json", value % b"NaN"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_other_encodings(write, encoding):
    line = LINE.decode().replace('"x"', '"Drachen fällt"')
    for name, text in (("t.jsonl", f"{line}\n{line}"), ("t.json", f"[{line}]")):
        with pytest.raises(MomentseekError, match=r"not UTF-8 text \(.*\); convert it to UTF-8"):
            read_truth(write(name, text.encode(encoding)))


def test_a_file_cut_off_within_a_letter(write):
    data = LINE.replace(b'"x"', '"ä'.encode())
    with pytest.raises(MomentseekError, match="is the file cut off"):
        read_truth(write("t.json", data[: data.index("ä".encode()) + 1]))


def test_endless_input(tmp_path, monkeypatch):
    with pytest.raises(MomentseekError, match="/dev/zero: is a device"):
        open_document("/dev/zero")
    monkeypatch.setenv("MOMENTSEEK_MAX_BYTES", "3000000")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_until_nobody_reads():
        with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))

    writer = threading.Thread(target=write_until_nobody_reads, daemon=True)
    writer.start()
    with pytest.raises(MomentseekError, match="larger than 3,000,000 bytes"):
        open_document(pipe)
    writer.join(10)


def test_a_pipe_is_read_whole(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[LINE], daemon=True)
    writer.start()
    assert open_document(pipe).data == LINE
    writer.join(10)


@pytest.mark.parametrize("value", ["4G", "", "-1", "0", "1.5"])
def test_a_bad_limit_is_one_sentence(write, monkeypatch, value):
    monkeypatch.setenv("MOMENTSEEK_MAX_BYTES", value)
    with pytest.raises(MomentseekError, match=f"MOMENTSEEK_MAX_BYTES is '{value}'; set it to a whole number of bytes"):
        read_truth(write("t.jsonl", LINE))


def test_the_limit(write, monkeypatch):
    monkeypatch.setenv("MOMENTSEEK_MAX_BYTES", str(len(LINE)))
    assert len(read_truth(write("t.jsonl", LINE))) == 1
    with pytest.raises(MomentseekError, match=r"larger than .*; set MOMENTSEEK_MAX_BYTES"):
        read_truth(write("t.jsonl", LINE + b"\n"))
