"""Files of weights are read without running them, and what cannot be read is said in one sentence."""

from __future__ import annotations

import os
import pickle
import random
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from momentseek.core.errors import MomentseekError
from momentseek.models.public.loading import read_public_weights

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.ones(2)}


def check(found: dict[str, torch.Tensor]) -> None:
    assert {name: tensor.tolist() for name, tensor in found.items()} == {n: t.tolist() for n, t in STATE.items()}


def test_safetensors(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "weights.bin")
    check(read_public_weights(tmp_path / "weights.bin"))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        STATE,
        {f"module.{name}": tensor for name, tensor in STATE.items()},
        {"model": STATE, "epoch": 3, "optimizer": {"state": {}}, "opt": Namespace(lr=1e-4)},
        {"state_dict": {name: tensor.double() for name, tensor in STATE.items()}},
        {name: torch.nn.Parameter(tensor) for name, tensor in STATE.items()},
    ],
    ids=["plain", "parallel", "with settings", "double", "parameters"],
)
def test_torch(tmp_path: Path, content: Any, zipped: bool) -> None:
    torch.save(content, tmp_path / "model.pth", _use_new_zipfile_serialization=zipped)
    check(read_public_weights(tmp_path / "model.pth"))


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harmed",)


@pytest.mark.parametrize("plain", [True, False])
def test_a_pickle_with_code_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    monkeypatch.chdir(tmp_path)
    content = {"model": STATE, "extra": Harmful()}
    if plain:
        Path("model.pth").write_bytes(pickle.dumps({"a": 1, "b": Harmful()}, protocol=2))
    else:
        torch.save(content, "model.pth")
    with pytest.raises(MomentseekError, match=r"^model.pth: calls \w+.mkdir when it is read, so it is not; ask for"):
        read_public_weights(Path("model.pth"))
    assert not Path("harmed").exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_torch_file_that_is_cut_off(tmp_path: Path, keep: float, zipped: bool) -> None:
    content = {f"layer{i}": torch.ones(50) for i in range(20)}
    torch.save(content, tmp_path / "m.pth", _use_new_zipfile_serialization=zipped)
    whole = (tmp_path / "m.pth").read_bytes()
    (tmp_path / "cut.pth").write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(MomentseekError, match=r"cut off; copy it again$"):
        read_public_weights(tmp_path / "cut.pth")


@pytest.mark.parametrize("keep", [12, 60, 0.9])
def test_a_safetensors_file_that_is_cut_off(tmp_path: Path, keep: float) -> None:
    save_file(STATE, tmp_path / "m.safetensors")
    whole = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[: int(keep if keep > 1 else keep * len(whole))])
    with pytest.raises(MomentseekError, match=r"is cut off or damaged .*; copy it again$"):
        read_public_weights(tmp_path / "cut.safetensors")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"epoch": 3}, "holds no state dict"),
        ({}, "holds no state dict"),
        ([1, 2], "holds no state dict"),
        ({"a": torch.zeros(2, 2).to_sparse()}, "'a' is no plain tensor"),
        ({"a": torch.zeros(1).expand(1 << 40)}, "'a' takes 4,398,046,511,104 bytes"),
        ({"a": torch.zeros(1).expand(1 << 14)}, "'a' claims 16,384 numbers, more than the file holds"),
    ],
    ids=["no weights", "empty", "a list", "sparse", "absurd", "more than it holds"],
)
def test_other_contents(tmp_path: Path, content: Any, message: str) -> None:
    torch.save(content, tmp_path / "model.pth")
    with pytest.raises(MomentseekError, match=message):
        read_public_weights(tmp_path / "model.pth")


def test_a_decompression_bomb(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data.pkl", pickle.dumps({}))
        archive.writestr("model/data/0", bytes(70 << 20))
    with pytest.raises(MomentseekError, match="as a decompression bomb does"):
        read_public_weights(tmp_path / "model.pth")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no such file"):
        read_public_weights(tmp_path / "none.pth")


def test_damaged_bytes_are_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    torch.save(STATE, file)
    sound, chance = file.read_bytes(), random.Random(1)
    outcomes = set()
    for _ in range(600):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 4, 20])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)
        try:
            read_public_weights(file)
            outcomes.add("read")
        except MomentseekError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
