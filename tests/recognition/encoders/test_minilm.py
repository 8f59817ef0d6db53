import os
import subprocess
import sys

import numpy as np
import pytest
from tests.recognition.encoders.fakes import needs_minilm

from momentseek.core import errors as optional
from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders import minilm
from momentseek.recognition.encoders.protocol import TextEncoder
from momentseek.recognition.encoders.registry import text_encoder


@needs_minilm
def test_paraphrases_are_nearer_than_unrelated_sentences():
    encoder = text_encoder("minilm")
    assert isinstance(encoder, TextEncoder)
    assert encoder.dim == 384
    rows = encoder.encode(
        ["A man is playing a guitar.", "Somebody plays the guitar.", "The stock market fell sharply on Monday."]
    )
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    cosine = rows @ rows.T
    assert cosine[0, 1] == pytest.approx(0.818, abs=2e-3)
    assert cosine[0, 2] == pytest.approx(-0.061, abs=2e-3)


@needs_minilm
def test_a_row_does_not_depend_on_its_batch():
    texts = ["one", "two words", "a much longer sentence, with a comma in it, that pads the others", ""] * 9
    encoder = text_encoder("minilm")
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), alone, atol=2e-7)
    np.testing.assert_array_equal(encoder.encode(["Éva\u00a0 RUNS"]), encoder.encode(["eva runs"]))


@needs_minilm
def test_long_texts_are_truncated_at_256_tokens():
    encoder = text_encoder("minilm")
    words = "word " * 254  # and two marks around them
    rows = encoder.encode([words, words + "completely different ending", "word " * 253 + "ending"])
    np.testing.assert_allclose(rows[0], rows[1], atol=2e-7)
    assert np.abs(rows[0] - rows[2]).max() > 1e-4


@needs_minilm
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (
            "U.S. don't e-mail 3.14 [MASK]",
            [1057, 1012, 1055, 1012, 2123, 1005, 1056, 1041, 1011, 5653, 1017, 1012, 2403, 103],
        ),
        ("a" * 101 + " paragliding", [100, 11498, 25394, 4667]),
        ('\t"\\" {tab}\r\n~new^line_', [1000, 1032, 1000, 1063, 21628, 1065, 1066, 2047, 1034, 2240, 1035]),
        ("bell\x07 \x0b \x1f \x00 \x7f", [4330]),
        ("Éva paragliding 猫", [9345, 11498, 25394, 4667, 100]),
    ],
)
def test_tokenisation_matches_training(text, ids):
    assert text_encoder("minilm")._tokenizer.encode(text).ids == [101, *ids, 102]


@needs_minilm
def test_empty_input_gives_empty_output():
    assert text_encoder("minilm").encode([]).shape == (0, 384)


def test_missing_runtime_error_says_what_to_install(monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(optional, "import_module", absent)
    with pytest.raises(MomentseekError, match=r"onnxruntime; install it with: pip install 'momentseek\[search\]'"):
        minilm.load_minilm()


def python(code, **environment):
    settings = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=settings).stdout


def test_help_does_not_load_the_runtime():
    code = (
        "import sys, momentseek.recognition.encoders, momentseek.cli.data.videos; print('onnxruntime' in sys.modules)"
    )
    assert python(code) == "False\n"


@needs_minilm
def test_runtime_sends_no_telemetry_and_leaves_no_device_id(tmp_path):
    names = [name for name in ("CI", "ORT_RUNNING_UNIT_TESTS") if name in os.environ]
    code = (
        f"import os; [os.environ.pop(n) for n in {names}]\n"
        "from momentseek.recognition.encoders.registry import text_encoder as t; t()"
    )
    python(code, XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path), ORT_DISABLE_TELEMETRY="0")
    assert [p.name for p in tmp_path.iterdir()] == ["momentseek"]


@needs_minilm
@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("a dog", True),
        ("Café", True),
        ("猫 dog", True),
        ("😀", False),
        ("猫", False),
        ("*", False),
        ("d" * 1999, False),
    ],
)
def test_knows_words(text, known):
    assert text_encoder("minilm").knows(text) is known


@needs_minilm
def test_word_rows_average_to_the_sentence():
    encoder = text_encoder("minilm")
    texts = ["a woman slices aubergines", "", "run"]
    tables = encoder.words(texts)
    assert [len(table) for table in tables] == [len(encoder.tokens(text)) for text in texts]
    assert encoder.tokens(texts[0])[:3] == ["a", "woman", "slices"]
    assert len(tables[1]) == 2  # of nothing, the marks
    np.testing.assert_allclose(encoder.words([texts[2]])[0], tables[2], atol=1e-5)  # whatever it is encoded with
    cosine = tables[2].mean(axis=0) @ encoder.encode([texts[2]])[0] / np.linalg.norm(tables[2].mean(axis=0))
    assert cosine > 0.5
