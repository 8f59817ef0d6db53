"""Vectors equal those of Hugging Face transformers, for small models with random weights."""

import json
import warnings

import numpy as np
import pytest
from tests.recognition.encoders.small import clip_tokenizer, photographs, siglip_tokenizer

from momentseek.recognition.encoders.dual_encoder import load_dual_encoder
from momentseek.recognition.encoders.preprocessing import read_preprocessing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def transformers():
    """The library, which takes more than a second to load, under its name in this file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        globals()["transformers"] = pytest.importorskip("transformers")


TEXTS = [
    "A man opens the door.",
    "two dogs",
    "",
    "the the the the the the the the the the the the the the the the the the",
]
LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def clip_model():
    torch.manual_seed(1)
    text = {**LAYERS, "vocab_size": 300, "max_position_embeddings": 16}
    text |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    vision = {**LAYERS, "image_size": 32, "patch_size": 8}
    return transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    ).eval()


def siglip_model():
    torch.manual_seed(2)
    text = {**LAYERS, "vocab_size": 300, "max_position_embeddings": 16, "pad_token_id": 0}
    text |= {"bos_token_id": 1, "eos_token_id": 1}
    vision = {**LAYERS, "image_size": 32, "patch_size": 8}
    return transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=vision)).eval()


class Call(torch.nn.Module):
    """A model's method as a module, so that it can be exported."""

    def __init__(self, model, method):
        super().__init__()
        self.model, self.method = model, method

    def forward(self, *inputs):
        names = ["pixel_values"] if "image" in self.method else ["input_ids", "attention_mask"]
        found = getattr(self.model, self.method)(**dict(zip(names, inputs, strict=False)))
        return found if torch.is_tensor(found) else found.pooler_output


def export(module, example, path, inputs, output):
    path.parent.mkdir(exist_ok=True)
    axes = {name: {0: "n"} if name == "pixel_values" else {0: "n", 1: "tokens"} for name in inputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, example, str(path), input_names=inputs, output_names=[output], dynamic_axes=axes, dynamo=False
        )


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("clip"), clip_model()
    model.config.save_pretrained(folder)
    processor = transformers.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    (folder / "preprocessor_config.json").write_text(processor.to_json_string())
    clip_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "<|endoftext|>"}))
    ids = torch.tensor([[0, 5, 6, 1], [0, 7, 1, 1]])
    tokens = ["input_ids", "attention_mask"]
    export(
        Call(model, "get_text_features"), (ids, (ids >= 0).long()), folder / "text_model.onnx", tokens, "text_embeds"
    )
    pixels = (torch.zeros(2, 3, 32, 32),)
    export(Call(model, "get_image_features"), pixels, folder / "vision_model.onnx", ["pixel_values"], "image_embeds")
    return folder, model, processor


@pytest.fixture(scope="module")
def siglip(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("siglip"), siglip_model()
    model.config.save_pretrained(folder)
    processor = transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32})
    (folder / "preprocessor_config.json").write_text(processor.to_json_string())
    siglip_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": {"content": "<pad>"}}))
    export(
        Call(model, "get_text_features"),
        (torch.ones(2, 16, dtype=torch.int64),),
        folder / "onnx/text_model.onnx",
        ["input_ids"],
        "pooler_output",
    )
    export(
        Call(model, "get_image_features"),
        (torch.zeros(2, 3, 32, 32),),
        folder / "onnx/vision_model.onnx",
        ["pixel_values"],
        "pooler_output",
    )
    return folder, model, processor


def unit(rows):
    rows = rows if torch.is_tensor(rows) else rows.pooler_output
    return torch.nn.functional.normalize(rows, dim=-1).numpy()


@pytest.fixture(params=["clip", "siglip"])
def family(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_pixels_match_the_processor(family):
    folder, _, processor = family
    prepare = load_dual_encoder(folder)._preprocessing
    for image in photographs():
        theirs = processor(image, return_tensors="np")["pixel_values"][0]
        np.testing.assert_allclose(prepare(image), theirs, atol=2e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"shortest_edge": 20}, "crop_size": {"height": 31, "width": 24}},  # black around it
        {"size": {"shortest_edge": 41}, "crop_size": {"height": 20, "width": 33}, "resample": 2},
        {"size": {"height": 17, "width": 29}, "do_center_crop": False, "resample": 1},
        {"do_resize": False, "do_center_crop": False, "rescale_factor": 1 / 127},
        {"size": {"shortest_edge": 16}, "do_center_crop": False, "do_normalize": False},
        {"size": {"shortest_edge": 16}, "do_center_crop": False, "do_rescale": False, "image_mean": [1, 2, 3]},
    ],
)
def test_every_setting_matches_transformers(settings):
    processor = transformers.CLIPImageProcessorPil(**settings)
    prepare = read_preprocessing(json.loads(processor.to_json_string()), "clip", "settings")
    for image in photographs():
        theirs = processor(image, return_tensors="np", input_data_format="channels_last")["pixel_values"][0]
        np.testing.assert_allclose(prepare(image), theirs, atol=2e-5)


def test_image_vectors_match(family):
    folder, model, processor = family
    images = photographs()
    with torch.no_grad():
        theirs = unit(model.get_image_features(**processor(images, return_tensors="pt")))
    ours = load_dual_encoder(folder).encode_images(images)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(theirs[0] - theirs[1]).max() > 1e-3  # different images are told apart


def test_clip_text_vectors_match(clip):
    folder, model, _ = clip
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="<|endoftext|>", model_max_length=16
    )
    given = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        theirs = unit(model.get_text_features(given["input_ids"], attention_mask=given["attention_mask"]))
    np.testing.assert_allclose(load_dual_encoder(folder).encode(TEXTS), theirs, atol=1e-5)
    np.testing.assert_allclose(load_dual_encoder(folder).encode(TEXTS[:1]), theirs[:1], atol=1e-5)


def test_siglip_texts_are_lower_case_and_padded_to_the_full_length(siglip):
    folder, model, _ = siglip
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="<pad>")
    lower = [text.lower() for text in TEXTS]
    given = tokenizer(lower, padding="max_length", max_length=16, truncation=True, return_tensors="pt")
    with torch.no_grad():
        theirs = unit(model.get_text_features(given["input_ids"]))
    ours = load_dual_encoder(folder).encode(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(ours @ ours[0]), np.argsort(theirs @ theirs[0]))


def test_rankings_match(family):
    folder, model, processor = family
    images, encoder = photographs(), load_dual_encoder(folder)
    with torch.no_grad():
        theirs = unit(model.get_image_features(**processor(images, return_tensors="pt")))
    query = encoder.encode(["a dog"])[0]
    ours = encoder.encode_images(images) @ query
    np.testing.assert_allclose(ours, theirs @ query, atol=1e-5)
    assert encoder.dim == len(query)


def test_a_template_wraps_texts_and_changes_the_fingerprint(clip):
    plain, wrapped = load_dual_encoder(clip[0]), load_dual_encoder(clip[0], template="a photo of {}")
    np.testing.assert_array_equal(wrapped.encode(["two {dogs}"]), plain.encode(["a photo of two {dogs}"]))
    assert wrapped.fingerprint != plain.fingerprint
