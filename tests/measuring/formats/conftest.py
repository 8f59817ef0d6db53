"""One small made-up file per format, and where the real data is."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.moments.judgements import Corpus
from momentseek.measuring.formats import FORMATS
from momentseek.measuring.formats.document import Document

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", ROOT.parent / "shared"))
CORPUS = Corpus({"lamp": 60.0, "kite": 90.5, "boat": 30.0}, {4: "lamp", 7: "kite", 9: "boat"}, "videos.json")


def lines(*records: Any) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def whole(value: Any) -> bytes:
    return json.dumps(value).encode()


def moment(video: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    return {"video_name": video, "timestamp": [start, end], **more}


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return b""

    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


NATIVE = [
    {"query_id": "q1", "query": "a lamp falls", "video": "lamp", "start": 0.0, "end": 5.0, "relevance": 4},
    {"query_id": "q2", "query": "ein Drachen fällt", "video": "kite", "start": 1.5, "end": 9.0, "relevance": 1},
    {"query_id": "q1", "query": "a lamp falls", "video": "boat", "start": 3.0, "end": 4.0, "relevance": 0},
]
NATIVE_RUN = [
    {"query_id": "q1", "video": "lamp", "start": 0.0, "end": 5.0, "score": 0.9},
    {"query_id": "q1", "video": "kite", "start": 2.0, "end": 5.0, "score": 0.95},
    {"query_id": "q2", "video": "boat", "start": 2.0, "end": 5.0, "score": -1.0},
]
SAMPLES: dict[str, tuple[str, bytes]] = {
    "prose-answers": (
        "answers.jsonl",
        lines(
            {
                "query_id": "q1",
                "query": "a lamp falls",
                "video": "lamp",
                "duration": 60.0,
                "answer": "From 12s to 20s.",
            },
            {"query_id": "q2", "query": "a zebra", "video": "kite", "duration": 90.5, "answer": "There is no zebra."},
            {"query_id": "q3", "query": "a boat", "video": "boat", "answer": None, "error": "HTTP 500"},
        ),
    ),
    "ego4d-nlq": (
        "nlq_val.json",
        whole(
            {
                "version": "1",
                "split": "val",
                "videos": [
                    {
                        "video_uid": "film",
                        "clips": [
                            {
                                "clip_uid": "lamp",
                                "video_start_sec": 100.0,
                                "video_end_sec": 160.0,
                                "annotations": [
                                    {
                                        "annotation_uid": "ab-1",
                                        "language_queries": [
                                            {"query": "Where is the lamp?", "clip_start_sec": 2.0, "clip_end_sec": 5.5},
                                            {"query": None},
                                            {"query": "What fell?", "clip_start_sec": 9.0, "clip_end_sec": 11.0},
                                        ],
                                    }
                                ],
                            }
                        ],
                    }
                ],
            }
        ),
    ),
    "ego4d-nlq-predictions": (
        "nlq_pred.json",
        whole(
            {
                "version": "1.0",
                "challenge": "ego4d_nlq_challenge",
                "results": [
                    {
                        "clip_uid": "lamp",
                        "annotation_uid": "ab-1",
                        "query_idx": 0,
                        "predicted_times": [[1, 5.5], [9, 12]],
                    },
                    {"clip_uid": "lamp", "annotation_uid": "ab-1", "query_idx": 2, "predicted_times": [[8.5, 11.0]]},
                ],
            }
        ),
    ),
    "mad": (
        "MAD_val.json",
        whole(
            {
                "17": {"movie": "lamp", "sentence": "He runs.", "timestamps": [2.0, 5.5], "movie_duration": 60.0},
                "18": {"movie": "kite", "sentence": "She sits.", "timestamps": [12.0, 15.5], "movie_duration": 90.5},
            }
        ),
    ),
    "trec-qrels": ("test.qrels", b"q1 0 lamp@0.0-5.0 3\nq1 0 kite@2.5-9.0 0\nq2 0 boat@1.0-4.0 1\n"),
    "trec-run": (
        "run.trec",
        b"q1 Q0 lamp@0.0-5.0 1 0.9 ours\nq1 Q0 kite@2.5-9.0 2 0.5 ours\nq2 Q0 boat@1.0-4.0 1 1.5 ours\n",
    ),
    "tvr": (
        "val.jsonl",
        lines(
            {"vid_name": "lamp", "duration": 60.0, "ts": [0, 4.5], "desc": "A lamp falls.", "type": "v", "desc_id": 12},
            {"vid_name": "kite", "duration": 90.5, "ts": [7.1, 9], "desc": "He sings.", "type": "vt", "desc_id": 13},
        ),
    ),
    "tvr-submission": (
        "submission.json",
        whole(
            {
                "video2idx": {"lamp": 4, "kite": 7},
                "VCMR": [
                    {"desc_id": 12, "desc": "A lamp falls.", "predictions": [[7, 0.0, 3.0, 0.5], [4, 1.5, 6.0, 0.4]]},
                    {"desc_id": 13, "desc": "He sings.", "predictions": [[4, 3.0, 4.5, 1.5]]},
                ],
                "VR": [
                    {"desc_id": 12, "desc": "A lamp falls.", "predictions": [[7, 0, 0, 0.5]]},
                    {"desc_id": 13, "desc": "He sings.", "predictions": [[4, 0, 0, 1.5], [7, 0, 0, 1.0]]},
                ],
            }
        ),
    ),
    "tvr-durations": ("dur.json", whole({"train": {"lamp": [60.0, 4]}, "val": {"kite": [90.5, 7], "boat": [30, 9]}})),
    "tvr-ranking": (
        "test.json",
        whole(
            [
                {
                    "query_id": 5,
                    "query": "someone sings",
                    "relevant_moment": [
                        moment("lamp", 0.5, 4.0, duration=60.0, caption="A sings", similarity=0.81, relevance=4),
                        moment("kite", 1, 2, duration=90.5, caption="B hums", similarity=0.5, relevance=0),
                    ],
                },
                {"query_id": 6, "query": "rain", "relevant_moment": []},
            ]
        ),
    ),
    "tvr-ranking-flat": (
        "val.jsonl",
        lines(
            {"pair_id": 3, "query_id": 5, "query": "sing", **moment("lamp", 0.5, 4.0, duration=60.0), "relevance": 3},
            {"pair_id": 4, "query_id": 6, "query": "rain", **moment("kite", 2.5, 4.0, duration=90.5), "relevance": 2},
            {"pair_id": 5, "query_id": 5, "query": "sing", **moment("kite", 6.5, 8.0, duration=90.5), "relevance": 1},
        ),
    ),
    "tvr-ranking-predictions": (
        "predictions.json",
        whole({"5": [moment("lamp", 0.0, 3.0, model_scores=0.3), moment("kite", 1.5, 3.0, model_scores=0.7)], "6": []}),
    ),
    "spr": (
        "spr.json",
        whole({"5": [moment("lamp", 0.0, 3.0, moment_rank=1), moment("kite", 1.5, 3.0, moment_rank=2)]}),
    ),
    "tvr-ranking-indexed": (
        "best.json",
        whole([{"query_id": 5, "query": "sing", "predictions": [[7, 0.0, 3.0, 12.5], [4, 1.5, 3.0, 11.0]]}]),
    ),
    "video-corpus": ("video_corpus.json", whole({"lamp": 60.0, "kite": 90.5})),
    "charades-csv": ("Charades.csv", b'id,subject,script,length\nLAMP1,X,"A ""lamp"", lit.",31.5\nKITE2,Y,,12.0\n'),
    "qvhighlights": (
        "highlight.jsonl",
        lines(
            {
                "qid": 21,
                "query": "A boat turns.",
                "duration": 30,
                "vid": "boat",
                "relevant_clip_ids": [0, 1, 4],
                "saliency_scores": [[1, 2, 3], [0, 0, 0], [4, 4, 2]],
                "relevant_windows": [[0, 4], [8, 10]],
            },
        ),
    ),
    "qvhighlights-submission": (
        "hl_val_submission.jsonl",
        lines(
            {
                "qid": 21,
                "query": "A boat turns.",
                "vid": "boat",
                "pred_relevant_windows": [[0.0, 6.0, 0.9], [8.0, 12.0, 0.95]],
                "pred_saliency_scores": [0.5, -0.25, 0.0],
            },
        ),
    ),
    "charades-sta": (
        "sta.txt",
        b"LAMP1 0.0 6.9##a person lights a lamp.\nKITE2 2.5 9.0##fly.\nLAMP1 3.0 4.0##sit ##2\n",
    ),
    "activitynet": (
        "train.json",
        whole(
            {
                "v_lamp": {
                    "duration": 60.0,
                    "timestamps": [[0.0, 9.5], [3.5, 60.0]],
                    "sentences": ["A lamp.", " Two."],
                },
                "v_kite": {"duration": 30.5, "timestamps": [[1.0, 2.0]], "sentences": ["A kite."]},
            }
        ),
    ),
    "charades-cd": (
        "test_ood.json",
        whole(
            {
                "LAMP1": {
                    "framestamps": [[0, 80]],
                    "decode_fps": 16.0,
                    "encoded_sentences": [[1, 2]],
                    "sentences": ["light a lamp"],
                    "video_fps": -1.0,
                    "timestamps": [[0.0, 5.0]],
                    "video_duration": 30.5,
                }
            }
        ),
    ),
    "activitynet-results": (
        "results.json",
        whole(
            {
                "version": "V0",
                "results": {
                    "LAMP1": [
                        {"sentence": "light a lamp", "timestamp": [1.0, 5.0], "score": 0.5},
                        {"sentence": "sit", "timestamp": [2.0, 5.0], "score": 0.25},
                    ],
                    "KITE2": [{"sentence": "fly", "timestamp": [0.0, 3.0], "score": 1.5}],
                },
            }
        ),
    ),
    "tacos": (
        "test.json",
        whole({"s1-d2.avi": {"timestamps": [[147, 294]], "sentences": ["He cuts."], "fps": 29.4, "num_frames": 2940}}),
    ),
    "tacos-tall": (
        "test.json",
        whole({"s1-d2.avi": {"duration": 2940.0, "timestamps": [[147, 294], [3, 9]], "sentences": ["He cuts.", "B"]}}),
    ),
    "didemo": (
        "val_data.json",
        whole(
            [
                {
                    "num_segments": 6,
                    "description": "the cat jumps",
                    "times": [[1, 1], [1, 2], [0, 0], [1, 1]],
                    "video": "cat.mov",
                    "annotation_id": 77,
                }
            ]
        ),
    ),
    "mvmr": (
        "mvmr.json",
        whole(
            {
                "LAMP1": {
                    "duration": 30.5,
                    "timestamps": [[1.0, 5.5]],
                    "sentences": ["light a lamp."],
                    "pos_moments": [[["KITE2", "a lamp is lit.", [2.0, 3.5]]]],
                    "retrieval_pool": [["LAMP1", "KITE2", "BOAT3"]],
                },
                "KITE2": {
                    "duration": 20.0,
                    "timestamps": [[2.0, 3.5]],
                    "sentences": ["a lamp is lit."],
                    "pos_moments": [[]],
                    "retrieval_pool": [["KITE2", "BOAT3"]],
                },
            }
        ),
    ),
    "hidden-challenges": (
        "test_00.csv",
        b"HITId,video_id,description,start,end\nH1,LAMP1.mp4,light a lamp.,50,80\nH1,LAMP1.mp4,light a lamp.,41,76\n"
        b'H2,KITE2.mp4,"fly, high",0,100\n',
    ),
    "tvc": (
        "tvc_val.jsonl",
        lines(
            {
                "vid_name": "lamp",
                "duration": 60.0,
                "ts": [0, 4.5],
                "clip_id": 3,
                "descs": [{"desc": "A lamp falls.", "type": "v"}, {"desc": "The lamp drops.", "type": "vt"}],
            },
            {"vid_name": "kite", "duration": 90.5, "ts": [7.1, 9], "clip_id": 4, "descs": []},
        ),
    ),
    "coco-captions": (
        "captions_val.json",
        whole(
            {
                "images": [{"id": 3, "file_name": "lamp.jpg"}, {"id": 4}],
                "annotations": [
                    {"image_id": 3, "id": 11, "caption": "A lamp falls."},
                    {"image_id": 3, "id": 12, "caption": "The lamp drops."},
                ],
            }
        ),
    ),
    "coco-results": ("results.json", whole([{"image_id": 3, "caption": "a lamp"}, {"image_id": 4, "caption": ""}])),
    "native": ("truth.jsonl", lines(*NATIVE)),
    "native-run": ("run.jsonl", lines(*NATIVE_RUN)),
    "parquet": ("truth.parquet", _parquet(NATIVE)),
    "parquet-run": ("run.parquet", _parquet(NATIVE_RUN)),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sample_name" in metafunc.fixturenames:
        metafunc.parametrize("sample_name", list(FORMATS))


@pytest.fixture
def sample(sample_name: str) -> Document:
    if sample_name not in SAMPLES:
        pytest.fail(f"the format {sample_name!r} has no sample; add one to SAMPLES in {__file__}")
    name, data = SAMPLES[sample_name]
    if not data:
        pytest.skip("pyarrow is not installed")
    return Document(Path(name), data)


@pytest.fixture
def samples() -> dict[str, tuple[str, bytes]]:
    return SAMPLES


@pytest.fixture
def corpus() -> Corpus:
    return CORPUS


@pytest.fixture(scope="session")
def shared() -> Path:
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no real data at {SHARED}")
    return SHARED


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """``write("a.json", value)`` puts bytes, text or JSON into a file and returns its path."""

    def put(name: str, value: Any) -> Path:
        path = tmp_path / name
        data = value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else whole(value)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return put
