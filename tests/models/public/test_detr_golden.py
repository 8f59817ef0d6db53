"""Moment-DETR, QD-DETR and UniVTG with public weights: what the public code computes for every file that is there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from golden_models.detr import (
    DetrFile,
    check_terms,
    encodings,
    saliency_of,
    suppressed,
    terms_of,
    windows_of,
    windows_wanted,
    write_data,
)

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.features.data import Data
from momentseek.models.layers.detr import sine_positions
from momentseek.models.layers.set_prediction import centre_width, match_cost, saliency_targets, window_samples
from momentseek.models.public.loading import load_public
from momentseek.models.public.weights import PUBLIC_MODELS
from momentseek.models.training.batches import Batches
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainingSettings
from momentseek.models.training.prediction import predict_split
from momentseek.models.training.warm_start import import_checkpoint
from momentseek.models.zoo.moment_detr import MomentDetr, SetPredictor
from momentseek.models.zoo.qd_detr import QdDetr
from momentseek.models.zoo.univtg import UniVtg

FOLDER = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared")) / "golden" / "detr"
FILES = sorted(FOLDER.glob("*.npz"))
pytestmark = pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
every_file = pytest.mark.parametrize("golden", [DetrFile(path) for path in FILES], ids=[path.stem for path in FILES])


@every_file
def test_features_become_the_same_inputs(golden: DetrFile) -> None:
    words, clips = golden.prepared(golden.model())
    golden.check(words.features, "input/src_txt")
    golden.check(words.mask.float(), "input/src_txt_mask")
    golden.check(clips.modality("video"), "input/src_vid")
    golden.check(clips.mask.float(), "input/src_vid_mask")
    if clips.subtitle is not None:
        golden.check(clips.subtitle, "input/src_aud")


@every_file
def test_annotations_become_the_same_targets(golden: DetrFile, tmp_path: Path) -> None:
    """From the files of features and annotations to the inputs and targets of a training step."""
    write_data(golden, tmp_path)
    model, given = golden.model(), golden.part("target")
    with Data.open(tmp_path) as data:
        data.use(model.config.modalities)
        batches = Batches(data, data.split("train"), model.config, TrainingSettings(), whole=True)
        batch = batches.batch(np.arange(golden.count))
    golden.check(batch.words.features, "input/src_txt")
    golden.check(batch.clips.modality("video"), "input/src_vid")
    samples = window_samples(batch.pairs, model.config.windows, torch.Generator())
    for n in range(golden.count):
        in_clips = given[f"spans_{n}"].dtype == torch.int64
        golden.check(samples.clips[n] if in_clips else centre_width(samples.times[n]), f"target/spans_{n}")
    if isinstance(model, UniVtg):
        draws = [
            model.clip_targets(batch.pairs, samples, batch.clips.mask, torch.Generator().manual_seed(seed))
            for seed in range(100)
        ]
        golden.check(draws[0].within.float(), "target/timestamp_window")
        golden.check(draws[0].times, "target/span_labels_nn", draws[0].within[..., None])
        annotators = 1 if batch.pairs.ratings is None else batch.pairs.ratings.shape[2]
        golden.check(draws[0].ratings / annotators, "target/saliency_scores", batch.clips.mask)
        for n, theirs in enumerate(given["saliency_pos_labels"][:, 0].tolist()):
            assert theirs in {int(t.positive[n]) for t in draws}
        return
    drawn = [
        saliency_targets(batch.pairs, samples, batch.clips.mask, torch.Generator().manual_seed(seed), public=True)
        for seed in range(100)
    ]
    if "saliency_all_labels" in given:
        golden.check(drawn[0].ratings, "target/saliency_all_labels")
    for name, ours in (("pos", [t.above for t in drawn]), ("neg", [t.below for t in drawn])):
        theirs = given[f"saliency_{name}_labels"]
        assert torch.equal(ours[0][:, 0], theirs[:, 0])
        for n, there in enumerate(batch.clips.mask):  # the public code may also draw a clip after the last
            assert theirs[n, 1] >= there.sum() or int(theirs[n, 1]) in {int(t[n, 1]) for t in ours}


@every_file
@torch.no_grad()
def test_rows_inside_are_the_same(golden: DetrFile) -> None:
    model, (words, clips) = golden.model(), golden.inputs()
    golden.check(model.word_in(words.features), "inner/text_proj")
    queries, videos = encodings(model, words, clips)
    golden.check(sine_positions(clips.mask, videos["clips"]), "inner/position", clips.mask[..., None])
    if isinstance(model, MomentDetr):
        memory, mask, _ = model.read(queries, videos)
        golden.check(memory, "inner/memory", mask[..., None])
    if isinstance(model, QdDetr):
        for kind, asked in (("", queries), ("_neg", model.next_words(queries))):
            memory, whole, _ = model.read(asked, videos)
            golden.check(memory, f"inner/memory{kind}", clips.mask[..., None])
            golden.check(whole, f"inner/memory_global{kind}")


@every_file
@torch.no_grad()
def test_outputs_are_the_same(golden: DetrFile) -> None:
    model = golden.model()
    check_outputs(golden, model, "output")
    if isinstance(model, QdDetr):
        check_outputs(golden, golden.model(mask="own"), "fixed_output")


def check_outputs(golden: DetrFile, model: object, section: str) -> None:
    words, clips = golden.inputs()
    queries, videos = encodings(model, words, clips)
    if isinstance(model, UniVtg):
        found = model.answer(queries, videos)
        golden.check(found.share[..., None], f"{section}/pred_logits", by=2)
        golden.check(found.times - model.stamps(clips.mask, found.times)[..., None], f"{section}/pred_spans", by=2)
        golden.check(found.near, f"{section}/saliency_scores", clips.mask)
        golden.check(found.clips, f"{section}/vid_mem_proj")
        golden.check(found.query[:, None], f"{section}/txt_mem_proj")
        return
    assert isinstance(model, SetPredictor)
    found = model.learn(queries, videos)
    golden.check(found.saliency, f"{section}/saliency_scores", clips.mask)
    golden.check(model.saliency(queries, videos), f"{section}/saliency_scores", clips.mask)
    if "other" in found.more:
        golden.check(found.more["other"], f"{section}/saliency_scores_neg", clips.mask)
    if "queries" in found.more:
        golden.check(found.more["queries"][-1], f"{section}/proj_queries")
        golden.check(found.more["words"], f"{section}/proj_txt_mem")
    for layer in range(len(found.logits)):
        name = section if layer == len(found.logits) - 1 else f"{section}/aux_{layer}"
        if f"{name}/pred_logits" in golden.arrays:
            golden.check(found.logits[layer], f"{name}/pred_logits")
            golden.check(found.spans[layer], f"{name}/pred_spans")


@every_file
@torch.no_grad()
def test_matchings_are_the_same(golden: DetrFile) -> None:
    model = golden.model()
    if not isinstance(model, SetPredictor):
        pytest.skip("UniVTG matches nothing")
    found, wanted, config = model.learn(*encodings(model, *golden.inputs())), windows_wanted(golden), model.config
    weights = config.cost_span, config.cost_iou, config.cost_label
    for layer, matching in enumerate(model.matchings(found, wanted)):
        name = "match/last" if layer == len(found.logits) - 1 else f"match/aux_{layer}"
        if f"{name}/cost_0" not in golden.arrays:
            continue
        for n, (rows, columns) in enumerate(matching):
            cost = match_cost(found.logits[layer][n], found.spans[layer][n], wanted[n], weights)
            golden.check(cost, f"{name}/cost_{n}", by=4)
            assert rows.tolist() == golden.arrays[f"{name}/query_{n}"].tolist()
            assert columns.tolist() == golden.arrays[f"{name}/target_{n}"].tolist()


@every_file
@torch.no_grad()
def test_losses_are_the_same(golden: DetrFile) -> None:
    model = golden.model()
    check_terms(golden, model)
    if isinstance(model, QdDetr):
        found = model.learn(*encodings(model, *golden.inputs()))
        for name, value in model.saliency_parts(found, saliency_of(golden)).items():
            golden.check(value, f"loss_part/{name}", by=4)
        check_terms(golden, golden.model(mask="own"), "fixed_loss")


@every_file
def test_gradients_are_as_long(golden: DetrFile) -> None:
    model = golden.model()
    total = torch.stack(list(terms_of(golden, model).values())).sum()
    golden.check(total, "loss/loss_overall", by=4)
    total.backward()
    theirs = {numbers_of(w): float(golden.arrays[f"gradnorm/{k}"]) for k, w in golden.part("weight").items()}
    for name, parameter in model.named_parameters():
        ours = -1.0 if parameter.grad is None else float(parameter.grad.norm())
        assert ours == pytest.approx(theirs.pop(numbers_of(parameter)), rel=2e-4, abs=2e-5), name
    assert set(theirs.values()) <= {-1.0, 0.0}, "only weights without a gradient have no place here"


def numbers_of(tensor: torch.Tensor) -> bytes:
    """The numbers of a tensor in order: they tell which public weight one of ours is, even a transposed one."""
    return tensor.detach().flatten().sort().values.numpy().tobytes()


def repaired(golden: DetrFile) -> dict[str, Any]:
    return {"qd_detr": {"mask": "own"}, "univtg": {"masked": True}}.get(golden.config["model"], {})


@every_file
@torch.no_grad()
def test_samples_alone_are_the_same(golden: DetrFile) -> None:
    """Without padding there is nothing for oversights to see, so that repaired models give the same."""
    for settings in ({}, repaired(golden)):
        model = golden.model(**settings)
        words, clips = golden.inputs()
        for n in range(golden.count):
            w, c = int(words.mask[n].sum()), int(clips.mask[n].sum())
            sound = None if clips.subtitle is None else clips.subtitle[n : n + 1, :c]
            alone = Clips(clips.modality("video")[n : n + 1, :c], sound, clips.mask[n : n + 1, :c])
            asked = Words(words.features[n : n + 1, :w], words.mask[n : n + 1, :w])
            queries, videos = encodings(model, asked, alone)
            if isinstance(model, UniVtg):
                found = model.answer(queries, videos)
                golden.check(found.share[0][:, None], f"single/{n}/pred_logits", by=2)
                golden.check(found.near[0], f"single/{n}/saliency_scores", by=2)
                continue
            assert isinstance(model, SetPredictor)
            said = model.detect(queries, videos)
            golden.check(said.logits[-1][0], f"single/{n}/pred_logits", by=2)
            golden.check(said.spans[-1][0], f"single/{n}/pred_spans", by=2)
            golden.check(said.saliency[0], f"single/{n}/saliency_scores", by=2)


@every_file
@torch.no_grad()
def test_padding_changes_nothing_once_repaired(golden: DetrFile) -> None:
    model = golden.model(**repaired(golden))
    words, clips = golden.inputs()
    batch = model.moments(*encodings(model, words, clips))[2]
    for n in range(golden.count):
        rows = Clips(clips.modality("video")[n : n + 1], None if clips.subtitle is None else clips.subtitle[n : n + 1],
                     clips.mask[n : n + 1])  # fmt: skip
        one = model.moments(*encodings(model, Words(words.features[n : n + 1], words.mask[n : n + 1]), rows))[2]
        assert torch.allclose(one[0], batch[n], atol=1e-5)


@every_file
@torch.no_grad()
def test_windows_and_saliency_are_the_same(golden: DetrFile) -> None:
    if "run/windows_0" not in golden.arrays:
        pytest.skip("the public inference fails")
    model = golden.model()
    rated = model.saliency(*encodings(model, *golden.inputs()))
    for n, rows in enumerate(windows_of(golden, model)):
        theirs = golden.arrays[f"run/windows_{n}"]
        assert not theirs[len(rows) :, 2].any()  # the public UniVTG keeps windows of padding, which score 0
        assert np.allclose(rows, theirs[: len(rows)], atol=1.01e-4)
        after = suppressed(theirs, golden.config)
        assert np.allclose(after, golden.arrays[f"run/nms_windows_{n}"])
        salient = golden.arrays[f"run/saliency_{n}"]
        assert np.allclose(rated[n, : len(salient)].numpy(), salient, atol=1e-3)


def test_univtg_cuts_neither_videos_nor_words_nor_windows() -> None:
    for golden in (DetrFile(path) for path in FILES if path.stem.startswith("univtg")):
        options = PUBLIC_MODELS["univtg"].options
        assert options is not None
        known = options({**golden.config, "use_txt_pos": False, "max_windows": 5})
        loaded = load_public("univtg", golden.part("weight"), known)
        config = loaded.model.config
        assert (config.max_clips, config.max_words, config.windows) == (2000, 512, 1000)
        assert loaded.assumed["max_clips"] == 2000
        assert golden.model(word_positions=True).config.max_words == golden.config["max_q_l"]


def test_qd_detr_takes_the_weight_of_its_contrast_from_the_options() -> None:
    options = PUBLIC_MODELS["qd_detr"].options
    assert options is not None
    assert options({"contrastive_align_loss": True, "contrastive_align_loss_coef": 0.02})["align"] == 0.02
    assert "align" not in options({"contrastive_align_loss": False, "contrastive_align_loss_coef": 0.02})


def test_univtg_rounds_to_clips() -> None:
    options = PUBLIC_MODELS["univtg"].options
    assert options is not None
    assert options({"round_multiple": 1, "clip_length": 2})["round_to"] == 2
    assert options({"round_multiple": 5, "clip_length": 0.5})["round_to"] == 0.5
    assert options({"round_multiple": 1})["round_to"] == 2
    assert "round_to" not in options({"round_multiple": -1, "clip_length": 2})


@every_file
def test_imported_weights_predict_the_same(golden: DetrFile, tmp_path: Path) -> None:
    """From weights, options, features and annotations in files to the windows that the public program writes."""
    if "run/windows_0" not in golden.arrays:
        pytest.skip("the public inference fails")
    write_data(golden, tmp_path)
    kind, streams = golden.config["model"], tuple(golden.config["v_dims"])
    own = {"streams": streams, **repaired(golden)}  # the public results of QD-DETR and UniVTG depend on the batch
    import_checkpoint(tmp_path / "model_best.ckpt", kind, tmp_path / "run", own)
    found = predict_split(tmp_path / "run", tmp_path, "train", task="SVMR", nms=1.0 if kind == "univtg" else None)
    assert not found.joined_streams
    for n in range(golden.count):
        rows = slice(*found.run.offsets[n : n + 2])
        ours = np.stack([found.run.start[rows], found.run.end[rows], found.run.score[rows]], 1)
        theirs = golden.arrays[f"run/windows_{n}"]
        if kind == "moment_detr":
            theirs = theirs[theirs[:, 1] > theirs[:, 0]]  # a run has no empty windows
            assert np.allclose(np.sort(ours, 0), np.sort(theirs, 0), atol=1.01e-4)
            continue
        logits = torch.from_numpy(golden.arrays[f"single/{n}/pred_logits"])
        scores = logits[:, 0] if kind == "univtg" else logits.softmax(-1)[:, 0]
        assert len(ours)
        assert all(float((scores - score).abs().min()) < 1.01e-4 for score in ours[:, 2])


def test_streams_that_are_not_named_are_noted(tmp_path: Path) -> None:
    golden = DetrFile(FILES[0])
    write_data(golden, tmp_path)
    done = import_checkpoint(tmp_path / "model_best.ckpt", golden.config["model"], tmp_path / "run")
    assert done.assumed["streams"] == ()
    assert predict_split(tmp_path / "run", tmp_path, "train", task="SVMR").joined_streams


def test_weights_are_imported_with_the_options_next_to_them(tmp_path: Path) -> None:
    golden = DetrFile(FILES[0])
    kind = golden.config["model"]
    torch.save({"model": golden.part("weight"), "epoch": 3}, tmp_path / "model_best.ckpt")
    (tmp_path / "opt.json").write_text(json.dumps(golden.config))
    done = import_checkpoint(
        tmp_path / "model_best.ckpt", kind, tmp_path / "run", {"streams": tuple(golden.config["v_dims"])}
    )
    assert done.settings["heads"] == golden.config["nheads"]
    assert "heads" not in done.assumed
    loaded = load_checkpoint(tmp_path / "run").model
    assert loaded.config == golden.model().config
    (tmp_path / "opt.json").write_text("[1]")
    with pytest.raises(MomentseekError, match=r"opt\.json: is no JSON object of options"):
        import_checkpoint(tmp_path / "model_best.ckpt", kind, tmp_path / "other")
