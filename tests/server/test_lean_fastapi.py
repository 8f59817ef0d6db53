from __future__ import annotations

import json
import subprocess
import sys

import pydantic
import pytest
from fastapi import FastAPI

from momentseek.core.errors import MomentseekError
from momentseek.server import lean_fastapi

SCRIPT = """
import json, sys
from momentseek.server.lean_fastapi import load_fastapi
load_fastapi()
import fastapi.openapi.models, pydantic
assert not fastapi.openapi.models.OpenAPI.__pydantic_complete__
assert "defer_build" not in pydantic.BaseModel.model_config
app = fastapi.FastAPI(title="one")
app.get("/one")(lambda number: {number: 1})
json.dump(app.openapi(), sys.stdout)
"""


def test_the_document_is_the_same_though_its_models_are_built_late():
    app = FastAPI(title="one")
    app.get("/one")(lambda number: {number: 1})
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == app.openapi()


def test_what_models_inherit_is_as_before_even_if_there_is_no_fastapi(monkeypatch):
    def missing(name: str, extra: str) -> object:
        if name == "pydantic":
            return pydantic
        raise MomentseekError(f"install momentseek[{extra}]")

    monkeypatch.setattr(lean_fastapi, "optional_module", missing)
    with pytest.raises(MomentseekError, match="serve"):
        lean_fastapi.load_fastapi()
    assert "defer_build" not in pydantic.BaseModel.model_config
