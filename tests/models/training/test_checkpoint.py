from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from weights import same_weights

from momentseek import __version__
from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import load_checkpoint, save_checkpoint
from momentseek.models.training.config import TrainConfig


@pytest.fixture
def written(tmp_path: Path, config: TrainConfig) -> Path:
    torch.manual_seed(1)
    model = build(config.model, config.settings, Dims(8, 12, 8))
    path = tmp_path / "run" / "best.safetensors"
    path.parent.mkdir()
    save_checkpoint(path, model, config, "abc", 7, 0.25, {"0.exp_avg": torch.ones(2)}, {"step": 7})
    return path


def test_a_checkpoint_carries_everything(written: Path, config: TrainConfig) -> None:
    found = load_checkpoint(written)
    torch.manual_seed(1)
    assert same_weights(found.model, build(config.model, config.settings, Dims(8, 12, 8)))
    assert not found.model.training
    assert found.config.table() == config.table()
    assert (found.dims, found.fingerprint, found.version) == (Dims(8, 12, 8), "abc", __version__)
    assert (found.step, found.value, dict(found.state)) == (7, 0.25, {"step": 7})
    assert found.optimiser["0.exp_avg"].tolist() == [1, 1]


def test_a_folder_means_its_best_checkpoint(written: Path) -> None:
    assert load_checkpoint(written.parent).step == 7
    written.rename(written.with_name("last.safetensors"))
    assert load_checkpoint(str(written.parent)).step == 7


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99])
def test_a_truncated_checkpoint_is_said(written: Path, share: float) -> None:
    data = written.read_bytes()
    written.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(MomentseekError, match="is cut off or no checkpoint"):
        load_checkpoint(written)


def test_foreign_files_are_said(tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "other.safetensors")
    with pytest.raises(MomentseekError, match="no checkpoint of momentseek"):
        load_checkpoint(tmp_path / "other.safetensors")
    (tmp_path / "text.safetensors").write_text("weights")
    with pytest.raises(MomentseekError, match="is cut off or no checkpoint"):
        load_checkpoint(tmp_path / "text.safetensors")


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "none.safetensors")
    with pytest.raises(MomentseekError, match="holds no checkpoint"):
        load_checkpoint(tmp_path)


def test_weights_of_another_model_are_said(tmp_path: Path, config: TrainConfig) -> None:
    model = build(config.model, config.settings, Dims(8, 12, 8))
    save_checkpoint(tmp_path / "x.safetensors", model, config.with_changes(["hidden=16"]), "abc", 1, None)
    with pytest.raises(MomentseekError, match="its weights do not fit xml"):
        load_checkpoint(tmp_path / "x.safetensors")


def test_a_new_checkpoint_replaces_the_old_only_when_complete(written: Path, config: TrainConfig) -> None:
    """The system lets this process write files of a few bytes only: it stops within the weights, as on a full disk."""
    resource = pytest.importorskip("resource")
    before, limits = written.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(MomentseekError, match="cannot be written"):
            save_checkpoint(written, build(config.model, config.settings, Dims(8, 12, 8)), config, "abc", 8, None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fingerprint", None),
        ("version", None),
        ("step", None),
        ("step", "soon"),
        ("value", '"high"'),
        ("state", "[1]"),
        ("config", "[1]"),
        ("dims", None),
        ("dims", '{"query": 8}'),
        ("dims", '{"query": 8, "video": "12", "subtitle": 8}'),
        ("dims", '{"query": null, "video": 12, "subtitle": 8}'),
        ("dims", '{"query": 8, "video": 12, "subtitle": 8, "sound": 3}'),
        ("dims", "3"),
    ],
    ids=[
        *("no-fingerprint", "no-version", "no-step", "step", "value", "state", "config"),
        *("no-dims", "some-dims", "text", "no-query", "more-dims", "number"),
    ],
)
def test_metadata_that_lack_something_are_said(written: Path, key: str, value: str | None) -> None:
    with safe_open(written, framework="pt") as f:
        metadata = f.metadata()
        tensors = {name: f.get_tensor(name).clone() for name in f.keys()}  # noqa: SIM118
    metadata = {k: v for k, v in metadata.items() if k != key} | ({} if value is None else {key: value})
    save_file(tensors, written, metadata=metadata)
    with pytest.raises(MomentseekError, match=f"its metadata lack a readable '{key}'; train again"):
        load_checkpoint(written)


def rewrite(path: Path, drop: tuple[str, ...] = ()) -> None:
    """Make a checkpoint one from before formats were written, without some of the model's settings."""
    with safe_open(path, framework="pt") as opened:
        metadata = dict(opened.metadata())
        tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    del metadata["format"]
    table = json.loads(metadata["config"])
    table["model"] = {name: value for name, value in table["model"].items() if name not in drop}
    save_file(tensors, path, metadata | {"config": json.dumps(table)})


@pytest.mark.parametrize("name", ["conquer", "mcn", "cal", "tef-only"])
def test_a_network_that_is_no_more_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    config = TrainConfig.of({"model": {"name": name, "hidden": 12}})
    path = tmp_path / "old.safetensors"
    save_checkpoint(path, build(name, config.settings, Dims(6, 7, 5)), config, "", 0, None)
    rewrite(path)
    with pytest.raises(MomentseekError, match=rf"holds format 1 of {name}, .*another network .*train again$"):
        load_checkpoint(path)
