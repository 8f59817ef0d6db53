"""FastAPI without a wait for what few servers are asked for.

Importing it builds a model for each part of an OpenAPI document, again and again as parts of one another: a seventh of
the time that a server takes to its first answer. They are built when somebody asks for that document instead.
"""

from __future__ import annotations

from momentseek.core.errors import optional_module


def load_fastapi() -> None:
    """Import FastAPI, and leave the models that it defines to be built on first use."""
    settings = optional_module("pydantic", "serve").BaseModel.model_config  # what new models inherit
    settings["defer_build"] = True
    try:
        optional_module("fastapi", "serve")
    finally:
        del settings["defer_build"]
