"""Moment-DETR, QD-DETR and UniVTG next to their public implementations: inputs, outputs, losses, matchings, windows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from momentseek.core.ranking import suppress
from momentseek.models.batch import Clips, Encodings, Words
from momentseek.models.inputs import stack_clips, stack_words
from momentseek.models.layers.set_prediction import SaliencyTargets
from momentseek.models.public.loading import load_public
from momentseek.models.public.weights import PUBLIC_MODELS
from momentseek.models.zoo.moment_detr import SetPredictor
from momentseek.models.zoo.univtg import ClipTargets, UniVtg

TOLERANCE = 5e-6
PUBLIC_TERMS = {
    "loss_span": "span", "loss_giou": "giou", "loss_label": "label", "loss_saliency": "saliency",
    "loss_contrastive_align": "align", "loss_b": "ends", "loss_g": "iou", "loss_f": "label", "loss_s_inter": "inter",
    "loss_s_intra": "intra",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class DetrFile:
    """One file: weights and inputs of a public model, and what it made of them."""

    path: Path

    @cached_property
    def arrays(self) -> dict[str, Any]:
        with np.load(self.path, allow_pickle=False) as opened:
            return dict(opened)

    @cached_property
    def config(self) -> dict[str, Any]:
        return json.loads(str(self.arrays["config"]))  # type: ignore[no-any-return]

    def part(self, name: str) -> dict[str, Tensor]:
        """All tensors below a name."""
        found = {k[len(name) + 1 :]: v for k, v in self.arrays.items() if k.startswith(f"{name}/")}
        return {k: torch.from_numpy(np.array(v)) for k, v in found.items()}

    def model(self, **settings: Any) -> Any:
        """Our model with the file's weights, as ``import-checkpoint`` makes it from weights and options."""
        kind = self.config["model"]
        options = PUBLIC_MODELS[kind].options
        assert options is not None
        known = {**options(self.config), "streams": tuple(self.config["v_dims"]), **settings}
        return load_public(kind, self.part("weight"), known).model

    @property
    def count(self) -> int:
        return len(self.config["durations"])

    def inputs(self) -> tuple[Words, Clips]:
        """Words and clips as the public code gave them to its model."""
        given = self.part("input")
        words = Words(given["src_txt"], given["src_txt_mask"].bool())
        return words, Clips(given["src_vid"], given.get("src_aud"), given["src_vid_mask"].bool())

    def prepared(self, model: Any) -> tuple[Words, Clips]:
        """Words and clips as we make them from the features of files."""
        ready, raw, words, pictures, sounds = model.config.preparation, self.part("raw"), [], [], []
        limit = model.config.max_words if self.config["model"] != "univtg" else None
        for n in range(self.count):
            streams = [raw[f"video_{n}_{s}"].numpy() for s in range(len(self.config["v_dims"]))]
            parts = [*streams, *([raw[f"audio_{n}"].numpy()] if f"audio_{n}" in raw else [])]
            rows = min(map(len, parts))
            words.append(ready.prepare_words(raw[f"text_{n}"].numpy()[:limit]))
            pictures.append(ready.prepare_clips(np.concatenate([s[:rows] for s in streams], 1), "video"))
            if len(parts) > len(streams):
                sounds.append(ready.prepare_clips(parts[-1][:rows], "subtitle"))
        return stack_words(words), stack_clips(pictures, sounds or None, [str(n) for n in range(self.count)])

    def check(self, ours: Tensor, name: str, mask: Tensor | None = None, *, by: float = 1.0) -> None:
        """Compare with an array of the file, where the mask is true, as a share of the largest number (or of 1)."""
        theirs = torch.from_numpy(np.array(self.arrays[name])).double()
        found = ours.detach().double()
        assert found.shape == theirs.shape, f"{name}: {tuple(found.shape)} and {tuple(theirs.shape)}"
        difference = (found - theirs).abs() / theirs.abs().max().clamp(min=1.0)
        if mask is not None:
            difference = difference[mask.expand_as(difference)]
        assert float(difference.max()) <= by * TOLERANCE, f"{name} differs by {float(difference.max()):.1e}"


def write_data(golden: DetrFile, folder: Path) -> None:
    """Write the file's features, annotations, weights and options as the public programs have them, and a data.toml."""
    notes = json.loads(str(golden.arrays["annotations"]))
    for n, entry in enumerate(notes):
        for name in (key for key in golden.arrays if key.startswith(("raw/video_", "raw/audio_", "raw/text_"))):
            kind, number, *stream = name.removeprefix("raw/").split("_")
            if int(number) != n:
                continue
            place = folder / "_".join([kind, *stream])
            place.mkdir(parents=True, exist_ok=True)
            if kind == "audio":
                np.save(place / f"{entry['vid']}.npy", golden.arrays[name])
            elif kind == "text":
                np.savez(place / f"qid{entry['qid']}.npz", last_hidden_state=golden.arrays[name])
            else:
                np.savez(place / f"{entry['vid']}.npz", features=golden.arrays[name])
    (folder / "truth.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in notes))
    streams = [f"video_{s}" for s in range(len(golden.config["v_dims"]))]
    audio = 'subtitle = "audio"\n' if (folder / "audio").exists() else ""
    (folder / "data.toml").write_text(
        f"clip_seconds = {golden.config['clip_length']}\n[features]\nshortest = true\nvideo = {json.dumps(streams)}\n"
        f'{audio}[splits.train]\ntruth = "truth.jsonl"\nquery = "text"\n'
    )
    torch.save({"model": golden.part("weight"), "epoch": 3}, folder / "model_best.ckpt")
    (folder / "opt.json").write_text(json.dumps(golden.config))


def encodings(model: Any, words: Words, clips: Clips) -> tuple[Encodings, Encodings]:
    return model.encode_words(words), model.encode_clips(clips)


def saliency_of(golden: DetrFile) -> SaliencyTargets:
    given = golden.part("target")
    ratings = given.get("saliency_all_labels", torch.zeros(golden.count, 1))
    return SaliencyTargets(given["saliency_pos_labels"], given["saliency_neg_labels"], ratings)


def windows_wanted(golden: DetrFile) -> list[Tensor]:
    return [golden.part("target")[f"spans_{n}"] for n in range(golden.count)]


def clip_targets(golden: DetrFile) -> ClipTargets:
    given = golden.part("target")
    return ClipTargets(
        given["timestamp_window"].bool(), given["span_labels_nn"], given["saliency_pos_labels"][:, 0],
        given["saliency_scores"],
    )  # fmt: skip


def terms_of(golden: DetrFile, model: Any) -> dict[str, Tensor]:
    """The weighted terms of the loss on the file's batch."""
    queries, videos = encodings(model, *golden.inputs())
    if isinstance(model, UniVtg):
        return model.terms(model.answer(queries, videos), clip_targets(golden))
    assert isinstance(model, SetPredictor)
    return model.terms(model.learn(queries, videos), windows_wanted(golden), saliency_of(golden))


def check_terms(golden: DetrFile, model: Any, section: str = "loss") -> None:
    terms, weights = terms_of(golden, model), golden.config["loss_weights"]
    for name, weight in weights.items():
        stem, _, layer = name.rpartition("_") if name.rpartition("_")[2].isdigit() else (name, "", "")
        ours = terms.pop(PUBLIC_TERMS[stem] + (f"_{layer}" if layer else ""))
        golden.check(ours / weight, f"{section}/{name}", by=4)
    assert not terms, f"{sorted(terms)} are terms that the public code does not have"


def windows_of(golden: DetrFile, model: Any) -> list[np.ndarray[Any, Any]]:
    """(windows, 3) of each sample: start, end and score, best first, as ``predict`` makes them."""
    start, end, score = (x.detach().double().numpy() for x in model.moments(*encodings(model, *golden.inputs())))
    duration = np.array(golden.config["durations"], dtype=float)[:, None]
    clips = golden.inputs()[1].mask.sum(1).numpy()[:, None] * golden.config["clip_length"]
    order = np.argsort(-score, axis=1, kind="stable")  # before scores are rounded, as ``moments_in_seconds`` has it
    start, end, score = (np.take_along_axis(x, order, axis=1) for x in (start, end, score))
    found = np.stack(model.to_seconds(start, end, score, clips, duration), 2)
    return [rows[rows[:, 2] > -np.inf] for rows in found]


def suppressed(rows: np.ndarray[Any, Any], config: dict[str, Any]) -> np.ndarray[Any, Any]:
    rows = rows[: config["max_before_nms"]]
    return rows[suppress(rows[:, 0], rows[:, 1], config["nms_thd"], limit=config["max_after_nms"])]
