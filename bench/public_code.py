"""Functions of a checkout of a public repository, for benchmarks that time its own code beside ours."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RANKING_MODULE = "utils.run_utils"
RANKING_FUNCTIONS = ("generate_min_max_length_mask", "topk_3d")


def functions_of(checkout: Path, module: str, names: tuple[str, ...]) -> list[Callable[..., Any]]:
    """The functions ``names`` of a module of the checkout; what is not there ends the benchmark with one sentence."""
    file = checkout.joinpath(*module.split(".")).with_suffix(".py")
    if not file.is_file():
        raise SystemExit(
            f"{checkout}: has no {file.relative_to(checkout)}; give a checkout of TVR-Ranking's repository"
        )
    sys.path.insert(0, str(checkout.absolute()))
    try:
        found = importlib.import_module(module)
    except ImportError as e:
        raise SystemExit(
            f"{file}: needs {e.name or e}; install it to time the public code (pip install {e.name})"
        ) from None
    finally:
        sys.path.remove(str(checkout.absolute()))
    if lost := [name for name in names if not callable(getattr(found, name, None))]:
        raise SystemExit(f"{file}: has no function {lost[0]}; check out a version that ranks moments")
    return [getattr(found, name) for name in names]
