from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("small_library", Path(__file__).parent / "small_library.py")
assert _spec is not None
assert _spec.loader is not None
if "small_library" not in sys.modules:  # tests have no packages, so a helper is loaded by its place
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["small_library"] = _module
    _spec.loader.exec_module(_module)
