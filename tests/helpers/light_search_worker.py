"""The process that searches for a server, with encoders that cost nothing."""

import importlib.util
from pathlib import Path

from momentseek.server.search_worker import main

spec = importlib.util.spec_from_file_location("light", Path(__file__).parent.parent / "library" / "light.py")
assert spec is not None
assert spec.loader is not None
light = importlib.util.module_from_spec(spec)
spec.loader.exec_module(light)

if __name__ == "__main__":
    light.install()
    main()
