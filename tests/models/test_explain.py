"""Explanations: numbers that agree with the model, for known queries and new ones, and figures of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli.checkpoints import explain as command
from momentseek.core.errors import MomentseekError
from momentseek.models.explain import explain, question, save
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import save_checkpoint
from momentseek.models.training.config import TrainConfig

SMALL = {"hidden": 16, "heads": 2, "longest": 8}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=30, queries=40, seed=1, video_dim=12, text_dim=8))
    with Data.open(folder) as opened:
        yield opened


def model_of(data: Data, name: str = "xml", **settings: object) -> CorpusModel:
    torch.manual_seed(0)
    columns = data.dims
    chosen = {**SMALL, **settings} if name != "tef-only" else {}
    return build(name, chosen, Dims(columns.query, columns.video, columns.subtitle)).eval()


def test_slates_curves_make_up_its_scores(data: Data, tmp_path: Path):
    model, split = model_of(data, "slate", context=4), data.split("test")
    found = explain(model, data, question(data, "test", split.truth.query_ids[3]), k=3)
    assert set(found.attention) == {"what", "start", "end"}
    assert (len(found.lengths), found.start_filter) == (8, ())
    shown = [(view, moment) for view in found.views for moment in view.found]
    assert len(shown) == 3
    for view, moment in shown:
        first = view.edges.index(moment.start)
        last = int(np.searchsorted(view.edges, moment.end))
        z = np.mean(view.curve[first:last]) + view.start_response[first] + view.end_response[last - 1]
        assert z + found.lengths[last - first - 1] == pytest.approx(moment.score, abs=1e-3)
    save(found, tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("nms", [None, 0.5])
@pytest.mark.parametrize("name", ["xml", "reloclnet"])
def test_numbers_are_the_models(name: str, nms: float | None, data: Data):
    model, split = model_of(data, name), data.split("test")
    id = split.truth.query_ids[3]
    found = explain(model, data, question(data, "test", id), k=3, nms=nms)
    assert (found.query, found.text) == (id, split.truth.text(id))
    assert found.words == tuple(found.text.split())
    for weights in found.attention.values():
        assert len(weights) == len(found.words)
        assert sum(weights) == pytest.approx(1, abs=1e-4)
    assert set(found.attention) == {"video", "subtitle"}
    run = predict(model, data, split, k=3, nms=nms)
    rows = run.rows(id)
    shown = sorted((f.rank, v.video, f.start, f.end) for v in found.views for f in v.found)
    wanted = [
        (rank, run.videos[run.video[r]], run.start[r], run.end[r])
        for rank, r in enumerate(range(rows.start, rows.stop), 1)
    ]
    assert shown == wanted
    for view in found.views:
        assert len(view.edges) == len(view.curve) + 1 == len(view.start_response) + 1
        assert sum(view.start_probability) == pytest.approx(1, abs=1e-3)
        for moment in view.found:
            first, last = (np.searchsorted(view.edges, t - 1e-6) for t in (moment.start, moment.end))
            p = np.log(view.start_probability[first]) + np.log(view.end_probability[last - 1])
            assert moment.score == pytest.approx(p + model.config.alpha * view.match, abs=1e-2)
    kernel = np.asarray(found.start_filter)
    curve = np.pad(found.views[0].curve, len(kernel) // 2)
    np.testing.assert_allclose(found.views[0].start_response, np.correlate(curve, kernel, "valid"), atol=1e-4)


def test_a_relevant_video_that_was_not_found_is_shown(data: Data):
    model = model_of(data)
    for id in data.split("test").truth.query_ids:
        asked = question(data, "test", id)
        found = explain(model, data, asked, k=1)
        wanted = {moment.video for moment, _ in asked.relevant}
        assert any(view.video in wanted for view in found.views) == bool(wanted)
        if not found.views[-1].found:
            assert found.views[-1].relevant
            return
    pytest.fail("no query was missed by a model with weights of chance")


def test_queries_by_text_and_what_cannot_be_asked(data: Data):
    split = data.split("test")
    text = split.truth.text(split.truth.query_ids[0])
    assert text is not None
    assert question(data, "test", text).id == split.truth.query_ids[0]
    with pytest.raises(MomentseekError, match="has no query 999999"):
        question(data, "test", "999999")
    with pytest.raises(MomentseekError, match="do not name the encoder"):
        question(data, "test", "a text of my own")
    with pytest.raises(MomentseekError, match="explain works for xml, reloclnet and slate"):
        explain(model_of(data, "tef-only"), data, question(data, "test", text))


def test_without_modular_queries_there_are_no_weights(data: Data, tmp_path: Path):
    found = explain(model_of(data, modular=False), data, question(data, "test", data.split("test").truth.query_ids[0]))
    assert found.attention == {}
    save(found, tmp_path / "why.svg")
    assert (tmp_path / "why.svg").read_text().startswith("<?xml")


def test_the_command_draws_and_tells(data: Data, tmp_path: Path):
    training = {"nms": 0.0}  # the run's setting is followed
    config = TrainConfig.of(
        {"model": {"name": "xml", **SMALL}, "training": training, "data": {"path": str(data.folder)}}
    )
    save_checkpoint(tmp_path / "best.safetensors", model_of(data), config, data.fingerprint, 0, None)
    words = [
        str(tmp_path),
        "--data",
        str(data.folder),
        "--split",
        "test",
        "--query",
        data.split("test").truth.query_ids[0],
    ]
    done = CliRunner().invoke(command, [*words, "--out", str(tmp_path / "why.png"), "--json"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(done.stdout)
    assert told["views"][0]["found"][0]["rank"] == 1
    asked = question(data, "test", words[-1])
    assert told == json.loads(json.dumps(explain(model_of(data), data, asked, nms=0.0).as_dict()))
    done = CliRunner().invoke(command, [*words, "--out", str(tmp_path / "why.json")])
    assert json.loads((tmp_path / "why.json").read_text()) == told
    for wrong, words_of_it in (
        (["--out", str(tmp_path / "why.gif")], "no known format"),
        ([], "nowhere to draw"),
    ):
        refused = CliRunner().invoke(command, [*words, *wrong])
        assert words_of_it in str(refused.exception)
