"""Datasets for Hugging Face: what is written is read back, also by the package itself where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek import Judgements
from momentseek.benchmarks.datasets.hub_folder import export_folder, find_splits, import_folder
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Saliency
from momentseek.measuring.cards import fingerprint_truth
from momentseek.measuring.formats import read_truth, write_truth

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def splits() -> dict[str, Judgements]:
    """Splits with other columns: levels and durations; ratings, a label and a query without moments."""
    graded = Judgements.from_groups(
        ["a", "b"], [2, 1], ["v", "w", "v"], [0, 1.5, 3], [5, 9, 4], [4, 0, 1], queries=["a dog", "a cat"],
        durations={"v": 60.0, "w": 30.5},
    )  # fmt: skip
    rated = Judgements.from_groups(
        ["c", "d"], [1, 0], ["x"], [2], [4], queries=["ein Bär", "a zebra"], fields={"type": ["v", "t"]},
        saliency=Saliency(np.array([0, 2, 2]), np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 4.0]])),
    )  # fmt: skip
    return {"train": graded, "test": rated}


def test_a_folder_is_read_back_whole(splits: dict[str, Judgements], tmp_path: Path) -> None:
    export_folder(splits, tmp_path / "mine", license="cc-by-4.0")
    for name, truth in splits.items():
        back = import_folder(tmp_path / "mine", name)
        assert fingerprint_truth(back) == fingerprint_truth(truth)
        assert back.queries == truth.queries
    back = import_folder(tmp_path / "mine", "test")
    assert back.fields == {"type": ("v", "t")}
    assert back.saliency is not None
    assert back.saliency.scores.tolist() == [[1.0, 2.0, 3.0], [0.0, 4.0, 4.0]]


def test_all_splits_have_the_same_columns_and_the_card_names_their_files(
    splits: dict[str, Judgements], tmp_path: Path
) -> None:
    import pyarrow.parquet

    export_folder(splits, tmp_path / "mine", license="cc-by-4.0")
    schemas = [pyarrow.parquet.read_schema(path) for path in sorted((tmp_path / "mine" / "data").glob("*.parquet"))]
    assert schemas[0].equals(schemas[1])
    card = (tmp_path / "mine" / "README.md").read_text()
    assert card.startswith("---\nlicense: cc-by-4.0\n")
    assert "  - split: test\n    path: data/test-*.parquet\n" in card
    assert "| train | 2 | 3 | 2 |" in card


def test_the_package_itself_loads_it(splits: dict[str, Judgements], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    export_folder(splits, tmp_path / "mine")
    loaded = datasets.load_dataset(str(tmp_path / "mine"), cache_dir=str(tmp_path / "cache"))
    assert {name: split.num_rows for name, split in loaded.items()} == {"train": 3, "test": 2}
    loaded.save_to_disk(str(tmp_path / "saved"))
    assert fingerprint_truth(import_folder(tmp_path / "saved", "train")) == fingerprint_truth(splits["train"])


def write_arrow(folder: Path, *shards: dict[str, list[Any]]) -> None:
    """A split as ``save_to_disk`` writes it: Arrow streams, and a state."""
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("{}")
    for i, columns in enumerate(shards):
        table = pyarrow.table(columns)
        with pyarrow.ipc.new_stream(folder / f"data-{i:05d}-of-{len(shards):05d}.arrow", table.schema) as stream:
            stream.write_table(table)


def test_what_was_saved_to_disk_in_shards_with_other_names(tmp_path: Path) -> None:
    one = {"qid": [1, 1], "vid": ["v", "w"], "start": [0.0, 1.0], "end": [2.0, 3.0]}
    two = {"qid": [2], "vid": ["v"], "start": [5.0], "end": [9.0]}
    write_arrow(tmp_path / "saved" / "val", one, two)
    truth = import_folder(tmp_path / "saved", rename={"qid": "query_id", "vid": "video"})
    assert (truth.query_ids, truth.counts.tolist()) == (("1", "2"), [2, 1])
    with pytest.raises(
        MomentseekError, match="has no column 'query_id', only qid, vid, start, end; say which one it is"
    ):
        import_folder(tmp_path / "saved")


def test_json_lines_are_a_dataset_too(tmp_path: Path) -> None:
    row = {"query_id": "q", "video": "v", "start": 0.0, "end": 2.0, "relevance": 3}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    assert import_folder(tmp_path).relevance.tolist() == [3]


@pytest.mark.parametrize(
    ("split", "sentence"), [(None, "there are test, train; name one"), ("tset", "is no split 'tset'")]
)
def test_a_split_must_be_named(splits: dict[str, Judgements], tmp_path: Path, split: str | None, sentence: str) -> None:
    export_folder(splits, tmp_path / "mine")
    with pytest.raises(MomentseekError, match=sentence):
        import_folder(tmp_path / "mine", split)


def test_folders_that_are_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no such folder"):
        find_splits(tmp_path / "none")
    with pytest.raises(MomentseekError, match="has no Parquet, JSON Lines or Arrow files"):
        find_splits(tmp_path)
    (tmp_path / "test.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(MomentseekError, match=r"test.parquet: cannot be read"):
        import_folder(tmp_path)


def test_the_commands(momentseek: Any, splits: dict[str, Judgements], tmp_path: Path) -> None:
    write_truth(splits["train"], tmp_path / "train.jsonl")
    done = momentseek("data", "to-hub", "train=train.jsonl", "--out", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote mine: 1 split, 2 queries, 2 files" in done.stderr
    done = momentseek("data", "from-hub", "mine", "--out", "back.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert fingerprint_truth(read_truth(tmp_path / "back.jsonl")) == fingerprint_truth(splits["train"])
    assert "write SPLIT=FILE" in momentseek("data", "to-hub", "train.jsonl", "--out", "other", cwd=tmp_path).stderr
    assert (
        "THEIRS=OURS"
        in momentseek("data", "from-hub", "mine", "--out", "b.jsonl", "--rename", "x", cwd=tmp_path).stderr
    )
