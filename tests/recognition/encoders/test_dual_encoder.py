import json
import os

import numpy as np
import pytest
from tests.recognition.encoders.graphs import siglip2_files, siglip2_vision, text, vision, write_model
from tests.recognition.encoders.small import gemma_tokenizer, photographs, siglip_tokenizer

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.dual_encoder import load_dual_encoder
from momentseek.recognition.encoders.preprocessing import load_tokenizer
from momentseek.recognition.encoders.protocol import ImageTextEncoder
from momentseek.recognition.encoders.registry import image_text_encoder
from momentseek.recognition.encoders.text_cache import unit_rows

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_loads_an_encoder_from_a_folder(tmp_path):
    folder = write_model(tmp_path / "model")
    encoder = image_text_encoder(f"file:{folder}")
    assert isinstance(encoder, ImageTextEncoder)
    assert (encoder.name, encoder.dim, encoder.short_side) == (f"file:{folder}", 6, 8)
    assert image_text_encoder(encoder.name) is encoder
    images, texts = photographs() * 3, ["a man", "", "two dogs run"] * 20
    rows, lines = encoder.encode_images(images), encoder.encode(texts)
    assert rows.shape == (15, 6)
    assert lines.shape == (60, 6)
    assert unit_rows(rows).all()
    assert unit_rows(lines).all()
    np.testing.assert_allclose(rows[:5], rows[10:], atol=1e-6)
    assert encoder.encode([]).shape == encoder.encode_images([]).shape == (0, 6)


def test_texts_do_not_load_the_vision_model(tmp_path):
    encoder = load_dual_encoder(write_model(tmp_path / "model", **{"onnx/vision_model.onnx": b"no graph"}))
    assert encoder.encode(["a man"]).shape == (1, 6)
    with pytest.raises(MomentseekError, match=r"vision_model\.onnx: ONNX Runtime cannot load it"):
        encoder.encode_images(photographs())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("config.json", r"has no config\.json; copy it from the model's repository"),
        ("tokenizer.json", r"has no tokenizer\.json; copy it"),
        ("preprocessor_config.json", r"has no preprocessor_config\.json or processor_config\.json"),
        ("onnx/vision_model.onnx", r"has no vision_model\.onnx, neither in onnx/"),
        ("onnx/text_model.onnx", r"has no text_model\.onnx, neither in onnx/"),
    ],
)
def test_missing_file_is_named(tmp_path, path, message):
    with pytest.raises(MomentseekError, match=message):
        load_dual_encoder(write_model(tmp_path / "model", **{path: None}))


def test_missing_folder(tmp_path):
    with pytest.raises(MomentseekError, match="is not a folder with an exported model"):
        load_dual_encoder(tmp_path / "absent")


@pytest.mark.parametrize(
    ("path", "data", "message"),
    [
        ("config.json", b"{", "is not JSON"),
        ("config.json", b"[]", "is not a JSON object"),
        ("config.json", b'{"model_type": "bert"}', "of type 'bert'; clip, siglip and siglip2 are supported"),
        ("tokenizer.json", b"{}", "is no tokenizer"),
        ("preprocessor_config.json", b'{"size": {"width": 3}}', "cannot be understood"),
        ("preprocessor_config.json", b'{"size": -8}', "are impossible"),
        ("preprocessor_config.json", b'{"image_std": [0, 1, 1]}', "are impossible"),
        ("preprocessor_config.json", b'{"max_num_patches": 256}', "NaFlex"),
        (
            "onnx/vision_model.onnx",
            vision(output="pooler_output"),
            "but no image_embeds; export the model with its proj",
        ),
        ("onnx/vision_model.onnx", vision(dim=5), "images have 5 numbers and texts 6; take both halves"),
        ("onnx/vision_model.onnx", vision(pixels="image"), "has unknown inputs .image."),
        ("onnx/vision_model.onnx", vision(batch=4), "takes exactly 4 at once; export it with a dynamic batch"),
        ("onnx/text_model.onnx", text(zero=True), "gave a vector that is zero or not finite"),
    ],
)
def test_unusable_files_are_named_with_what_to_do(tmp_path, path, data, message):
    folder = write_model(tmp_path / "model", **{path: data})

    def use():
        load_dual_encoder(folder).encode(["a man"])
        load_dual_encoder(folder).encode_images(photographs())

    with pytest.raises(MomentseekError, match=message):
        use()


def test_siglip_uses_the_pooled_output(tmp_path):
    config = json.dumps({"model_type": "siglip", "text_config": {"max_position_embeddings": 12}}).encode()
    graphs = {"onnx/vision_model.onnx": vision(output="pooler_output")}
    graphs |= {"onnx/text_model.onnx": text(output="pooler_output", tokens=12)}
    settings = json.dumps({"image_processor": {"size": {"height": 8, "width": 8}}}).encode()
    changes = {"config.json": config, "preprocessor_config.json": None, "processor_config.json": settings}
    encoder = load_dual_encoder(write_model(tmp_path / "model", **changes, **graphs))
    assert encoder.encode(["a man"]).shape == encoder.encode_images(photographs()[:1]).shape == (1, 6)


def test_graphs_with_a_fixed_batch_and_length(tmp_path):
    fixed = {"onnx/vision_model.onnx": vision(batch=1), "onnx/text_model.onnx": text(batch=1, tokens=12)}
    free, encoder = (
        load_dual_encoder(write_model(tmp_path / "free")),
        load_dual_encoder(write_model(tmp_path / "model", **fixed)),
    )
    assert encoder.encode(["a man", "two dogs"]).shape == (2, 6)
    np.testing.assert_allclose(encoder.encode_images(photographs()), free.encode_images(photographs()), atol=1e-6)


def test_uses_the_most_precise_variant(tmp_path):
    folder = write_model(tmp_path / "model", **{"onnx/vision_model.onnx": None, "vision_model_int8.onnx": b"bad"})
    (folder / "vision_model_fp16.onnx").write_bytes(vision())
    assert load_dual_encoder(folder).encode_images(photographs()).shape == (5, 6)


def test_fingerprint_covers_every_file(tmp_path):
    folder = write_model(tmp_path / "model")
    (folder / "onnx/text_model.onnx_data").write_bytes(b"weights beside the graph")
    (folder / "README.md").write_bytes(b"not read")
    seen = {load_dual_encoder(folder).fingerprint}
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(paths) == 8
    for path in paths:
        path.write_bytes(path.read_bytes() + b" ")
        os.utime(path, ns=(1, 1))
        seen.add(load_dual_encoder(folder).fingerprint)
    assert len(seen) == 1 + 7  # the README does not count


def test_rejects_both_halves_in_one_graph(tmp_path):
    folder = write_model(tmp_path / "model", **{"onnx/vision_model.onnx": None, "model.onnx": b"both"})
    with pytest.raises(MomentseekError, match=r"model\.onnx: has both halves of the model in one graph.*docs/encoders"):
        load_dual_encoder(folder)


@pytest.mark.parametrize("ending", ["_quantized", "_int8", "_uint8"])
def test_8_bit_graphs_encode_one_at_a_time(tmp_path, ending):
    """They quantise by a batch's largest value, so that a picture's vector would depend on its batch."""
    files = siglip2_files()
    del files["onnx/vision_model.onnx"]
    files[f"onnx/vision_model{ending}.onnx"] = siglip2_vision(rounds=True)
    encoder = load_dual_encoder(write_model(tmp_path / "model", **{"onnx/vision_model.onnx": None, **files}))
    images = [np.full((8, 8, 3), colour, np.uint8) for colour in ((160, 130, 90), (255, 0, 90), (0, 255, 255))]
    together = encoder.encode_images(images)
    np.testing.assert_array_equal(together, np.concatenate([encoder.encode_images([image]) for image in images]))
    batch = encoder._encode_images(images)
    assert not np.allclose(batch, together, atol=0.01)


@pytest.mark.parametrize("settings", [{}, {"padding_side": "left", "do_lower_case": False, "pad_token": "<eos>"}])
def test_siglip_2_gets_64_lower_case_tokens_padded_on_the_right(tmp_path, settings):
    gemma_tokenizer().save(str(tmp_path / "tokenizer.json"))
    tokens = load_tokenizer(tmp_path, {"model_type": "siglip"}, settings, "siglip")
    ids, mask = tokens(["A RED picture", "blue"])
    assert ids[0].tolist() == [4, 7, 6, 1] + [0] * 60
    assert ids[1].tolist() == [9, 1] + [0] * 62
    assert mask.all()


def test_the_first_siglip_pads_with_its_end_mark(tmp_path):
    siglip_tokenizer().save(str(tmp_path / "tokenizer.json"))
    tokens = load_tokenizer(tmp_path, {}, {"pad_token": "</s>", "padding_side": "left"}, "siglip")
    ids, _ = tokens(["a man"])
    assert ids.shape == (1, 64)
    assert ids[0, 10:].tolist() == [1] * 54
