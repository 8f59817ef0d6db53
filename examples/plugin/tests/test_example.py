"""Tests of the example's parts; run them where it is installed: ``pytest examples/plugin/tests``."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from momentseek import Judgements, Run, evaluate, read_run, write_run
from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.captioner import CAPTIONERS, CaptionBatch, CaptionerDims, caption_rows
from momentseek.models.features.data import Dims
from momentseek.models.features.store import Features
from momentseek.models.registry import build
from momentseek.models.training.trackers import TRACKERS, TrackedRun
from momentseek.recognition.captions.inputs import SPECIAL_WORDS, MomentInputs
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.search.localise.localiser import Curve, localise


def test_spans_are_products_of_the_clips_odds() -> None:
    """Every span's probability written out as a loop over its clips."""
    torch.manual_seed(0)
    model = build("span-crf", {"hidden": 8, "longest": 4, "shortest": 2}, Dims(5, 6, None)).double().eval()
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    words = Words(torch.randn(2, 4, 5).double(), torch.ones(2, 4, dtype=torch.bool))
    clips = Clips(torch.randn(2, 6, 6).double() * mask[..., None], None, mask)
    queries, videos = model.encode_words(words), model.encode_clips(clips)
    logits, found = model.logits(queries, videos), model.spans(queries, videos)
    for i, count in enumerate((6, 3)):
        odds = {
            (s, n): torch.exp(sum(logits[i, s + j] for j in range(n))).item()
            for s, n in itertools.product(range(count), range(2, 5))
            if s + n <= count
        }
        for s, n in itertools.product(range(6), range(2, 5)):
            expected = odds.get((s, n), 0.0) / sum(odds.values())
            assert found[i, s, n - 2].exp().item() == pytest.approx(expected, abs=1e-12)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    model = build("span-crf", {"hidden": 8, "longest": 4}, Dims(5, 6, None)).eval()
    clips = torch.randn(1, 3, 6)
    alone = model.encode_clips(Clips(clips, None, torch.ones(1, 3, dtype=torch.bool)))
    mask = torch.tensor([[True] * 3 + [False] * 4])
    padded = model.encode_clips(Clips(torch.nn.functional.pad(clips, (0, 0, 0, 4)), None, mask))
    assert torch.allclose(alone["clips"], padded["clips"][:, :3], atol=1e-6)


def test_the_first_match_counts_by_its_rank() -> None:
    truth = Judgements.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 10, 1)])
    run = Run.from_rows([("a", "v", 20, 30, 0.9), ("a", "v", 0, 9, 0.8), ("b", "v", 20, 30, 0.9)])
    assert evaluate(run, truth, "MRR@5[IoU>=0.5]")["MRR@5[IoU>=0.5]"] == 0.25


def test_a_spreadsheet_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = Run.from_rows([("a", "v", 0, 9.5, 0.8), ("a", "w", 1, 2, 0.7), ("b", "v", 20, 30, 0.9)])
    write_run(run, tmp_path / "run.csv", to="plain-csv")
    again = read_run(tmp_path / "run.csv")
    assert again.query_ids == run.query_ids
    assert again.start.tolist() == run.start.tolist()
    assert again.score.tolist() == run.score.tolist()


def test_the_clips_above_the_threshold_are_proposed() -> None:
    spans = localise(Curve.regular([0.1, 0.1, 0.1, 0.8, 0.9, 0.8, 0.1, 0.1, 0.1], seconds=2), "otsu")
    assert (spans.start[0], spans.end[0]) == (6.0, 12.0)


def test_pictures_and_their_colours_are_alike() -> None:
    encoder = image_text_encoder("hues")
    pictures = encoder.encode_images(
        [np.full((40, 60, 3), colour, np.uint8) for colour in ((200, 20, 20), (20, 20, 250))]
    )
    alike = encoder.encode(["a red door", "the BLUE sea", "somebody"]) @ pictures.T
    assert alike[:2].round(4).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert alike[2, 0] == pytest.approx(8**-0.5)


def test_captions_are_learnt_by_heart() -> None:
    torch.manual_seed(0)
    spec = CAPTIONERS["mean-gru"]
    dims = CaptionerDims(6, (*SPECIAL_WORDS, "a", "dog", "cat", "runs"))
    model = spec.model(spec.config(hidden=16, word_dim=8), dims)
    captions = caption_rows([["a", "dog", "runs"], ["a", "cat"]], model.vocabulary, 5)
    clips = torch.randn(2, 4, 6)
    rows = torch.zeros(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.bool)
    optimiser = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(80):
        optimiser.zero_grad()
        model.loss(CaptionBatch(clips, *rows, captions), 0, torch.Generator())["words"].backward()
        optimiser.step()
    inputs = MomentInputs(clips.numpy(), rows[0].numpy(), rows[1].numpy())
    assert model.describe(inputs) == ["a dog runs", "a cat"]


class Recorder:
    """Stands for the module of a tracker, and for its run: it notes what is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.summary: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Recorder:
            self.calls.append((name, given[0] if given else named))
            return self

        return call


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_trackers_are_told_steps_and_scores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, name, recorder)
    tracker = TRACKERS[name](TrackedRun(tmp_path / "runs", {"training": {"lr": 0.1}}))
    assert tracker is not None
    tracker.log(5, {"loss": 1.5})
    report = {"scores": {"val": {"R@1[IoU>=0.5]": 0.25}}}
    tracker.finish(SimpleNamespace(report=report))  # type: ignore[arg-type]
    sent = [given for _, given in recorder.calls]
    assert {"loss": 1.5} in sent
    assert recorder.summary == {"val/R@1[IoU>=0.5]": 0.25} or {"val/R_1 IoU ge 0.5": 0.25} in sent


def test_lines_after_the_step_that_training_continues_from_are_dropped(tmp_path: Path) -> None:
    first = TRACKERS["json-lines"](TrackedRun(tmp_path, {}))
    assert first is not None
    for step in (1, 2, 3):
        first.log(step, {"loss": float(step)})
    TRACKERS["json-lines"](TrackedRun(tmp_path, {}, step=2))
    assert [json.loads(line)["step"] for line in (tmp_path / "track.jsonl").read_text().splitlines()] == [1, 2]


ROWS = {"a": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.ones((1, 2), np.float32)}


def npz_bytes(rows: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, features=rows.astype(np.float16))
    return file.getvalue()


def packed(rows: np.ndarray) -> bytes:
    """As msgpack-numpy packs ``{"features": rows}``."""
    msgpack = pytest.importorskip("msgpack")
    array = {"nd": True, "type": rows.dtype.str, "kind": "", "shape": rows.shape, "data": rows.tobytes()}
    return msgpack.packb({"features": array}, use_bin_type=True)


def write_lmdb(path: Path, values: dict[str, bytes]) -> Path:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(path), map_size=1 << 20) as database, database.begin(write=True) as transaction:
        for name, value in values.items():
            transaction.put(name.encode(), value)
    return path


@pytest.mark.parametrize("pack", [npz_bytes, packed], ids=["compressed", "msgpack"])
def test_lmdb_is_read_as_hero_and_conquer_keep_it(pack: Callable[[np.ndarray], bytes], tmp_path: Path) -> None:
    values = {"__keys__": json.dumps(list(ROWS)).encode(), **{name: pack(rows) for name, rows in ROWS.items()}}
    with Features(write_lmdb(tmp_path / "resnet_slowfast_1.5", values)) as features:
        assert features.names == ("a", "b")
        for name, rows in ROWS.items():
            assert features.rows(name) == len(rows)
            np.testing.assert_array_equal(features.read(name), rows)


@pytest.mark.parametrize(
    "value", [b"\xc1", b"PK broken", pickle.dumps({"features": 1}), b"\x81\xa8features\x01"], ids=range(4)
)
def test_a_hostile_value_of_an_lmdb_is_one_sentence(value: bytes, tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", {"a": value})
    with Features(path) as features, pytest.raises(MomentseekError, match="video a"):
        features.read("a")


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def test_tar_files_are_read_as_webdataset_writes_them(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    for number, (name, rows) in enumerate(ROWS.items()):
        members = {f"{name}.features.npz": npz_bytes(rows), f"{name}.json": b"{}"}
        write_tar(tmp_path / "shards" / f"{number:06d}.tar", members)
    for path in (tmp_path / "shards", tmp_path / "shards" / "000000.tar"):
        with Features(path) as features:
            assert "a" in features
            np.testing.assert_array_equal(features.read("a"), ROWS["a"])


def test_a_torn_tar_and_a_name_twice_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "torn.tar").write_bytes(b"not a tar")
    with pytest.raises(MomentseekError, match="list of members cannot be read"):
        Features(tmp_path / "torn.tar")
    (tmp_path / "shards").mkdir()
    for number in range(2):
        write_tar(tmp_path / "shards" / f"{number}.tar", {"a.npz": npz_bytes(ROWS["a"])})
    with pytest.raises(MomentseekError, match="has a twice, or another shard has it"):
        Features(tmp_path / "shards")
