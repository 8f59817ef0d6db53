"""EMScore: against loops over words and frames, with a small CLIP compared to `transformers`, and in `data massive`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tokenizers
import torch
import transformers

from momentseek.benchmarks.datasets.emscore import emscore_of, emscores
from momentseek.benchmarks.datasets.massive import MassiveSettings
from momentseek.benchmarks.datasets.massive_report import build_massive_dataset
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.models.clip_words import ClipTextTower

WORDS = ["<|startoftext|>", "<|endoftext|>", "a", "dog", "runs", "cat", "sleeps"]


def make_clip(folder: Path) -> Any:
    """A small CLIP with random weights in a folder, and `transformers`' model of it."""
    torch.manual_seed(0)
    text = {
        "vocab_size": len(WORDS), "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 9, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1,
    }  # fmt: skip
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 8, "patch_size": 4}  # fmt: skip
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
    model = transformers.CLIPModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="a"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{WORDS[0]} $A {WORDS[1]}", special_tokens=[(WORDS[0], 0), (WORDS[1], 1)]
    )
    words.save(str(folder / "tokenizer.json"))
    return model


def test_words_are_those_of_transformers(tmp_path: Path) -> None:
    theirs = make_clip(tmp_path)
    found = ClipTextTower(tmp_path).read(["a dog runs", "cat"])
    assert [read.tokens.tolist() for read in found] == [[0, 2, 3, 4, 1], [0, 5, 1]]
    for read in found:
        ids = torch.from_numpy(read.tokens)[None]
        with torch.no_grad():
            states = theirs.text_model(input_ids=ids).last_hidden_state @ theirs.text_projection.weight.T
        wanted = torch.nn.functional.normalize(states[0], dim=1)
        assert np.allclose(read.words, wanted, atol=2e-5)
        assert np.allclose(read.sentence, wanted[-1], atol=2e-5)


def test_the_score_equals_loops() -> None:
    rng = np.random.default_rng(0)
    words, frames = (rng.normal(size=(n, 5)).astype(np.float32) for n in (4, 7))
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    frames /= np.linalg.norm(frames, axis=1, keepdims=True)
    weights = np.array([0.0, 0.5, 2.0, 1.0])
    found = emscores(words, weights, words[3], frames, np.array([0, 3]))
    for video, rows in enumerate((frames[:3], frames[3:])):
        precision = sum(g * max(float(w @ f) for f in rows) for g, w in zip(weights, words, strict=True)) / 3.5
        recall = sum(max(float(w @ f) for w in words) for f in rows) / len(rows)
        mean = rows.mean(axis=0)
        whole = float(words[3] @ mean) / math.sqrt(float(mean @ mean))
        assert found[video] == pytest.approx((2 * precision * recall / (precision + recall) + whole) / 2, abs=1e-6)


def judgements() -> Judgements:
    return Judgements.from_groups(
        ["1", "2", "3"], [1] * 3, ["x", "y", "z"], [0.0] * 3, [5.0] * 3, durations={"x": 9, "y": 9, "z": 9},
        queries=["a dog runs", "a dog runs", "cat sleeps"],
    )  # fmt: skip


def test_scores_of_a_file_of_frames(tmp_path: Path) -> None:
    make_clip(tmp_path)
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "frames.h5", "w") as file:
        for video in ("x", "y"):
            file[video] = rng.normal(size=(4, 6)).astype(np.float32)
    score = emscore_of(judgements(), str(tmp_path / "frames.h5"), str(tmp_path))
    found = score("1", ["x", "z", "y"])
    assert np.isnan(found).tolist() == [False, True, False]
    assert np.allclose(score("2", ["y"])[0], found[2]), "the same sentence"
    with pytest.raises(MomentseekError, match=r"EMScore compares frames with single words.*name its folder \(`clip`\)"):
        emscore_of(judgements(), str(tmp_path / "frames.h5"), None)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.ones((2, 5), np.float32)
    with pytest.raises(MomentseekError, match="frames have 5 columns and words 6; give the vectors of the same CLIP"):
        emscore_of(judgements(), str(tmp_path / "other.h5"), str(tmp_path))


def test_massive_by_simcse_and_emscore(tmp_path: Path) -> None:
    make_clip(tmp_path)
    config = transformers.BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=8, max_position_embeddings=8)  # fmt: skip
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path / "simcse")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "opens", "door", "eats", "pizza"]
    (tmp_path / "simcse" / "vocab.txt").write_text("\n".join(pieces))
    lines = [
        f"v{n} 0.0 5.0##{text}." for n, text in enumerate(["opens door", "opens door", "eats pizza", "pizza", "door"])
    ]
    (tmp_path / "test.txt").write_text("\n".join(lines))
    (tmp_path / "durations.json").write_text(json.dumps({f"v{n}": 10.0 for n in range(5)}))
    with h5py.File(tmp_path / "frames.h5", "w") as file:
        for n in range(5):
            file[f"v{n}"] = np.random.default_rng(n).normal(size=(3, 6)).astype(np.float32)
    settings = MassiveSettings(pool=2, text_positive=1.0, text_negative=1.0)
    built = build_massive_dataset(
        str(tmp_path / "test.txt"), str(tmp_path / "mvmr.json"), settings,
        encoder=f"simcse:{tmp_path / 'simcse'}", frames=str(tmp_path / "frames.h5"), clip=str(tmp_path),
        videos=str(tmp_path / "durations.json"),
    )  # fmt: skip
    assert "no visual scores" not in " ".join(built.notes)
    assert built.summary["encoder"].startswith("simcse:")
    with pytest.raises(MomentseekError, match="both give visual scores; give one"):
        build_massive_dataset(
            str(tmp_path / "test.txt"), "out", MassiveSettings(pool=2), features="a.npz", frames="b.h5",
            videos=str(tmp_path / "durations.json"),
        )  # fmt: skip
