"""Build the C kernels into the wheel; without a compiler the wheel is pure Python, and numpy does their work."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
BUILDER = HERE / "src" / "momentseek" / "core" / "native" / "build.py"


class KernelsHook(BuildHookInterface):  # type: ignore[misc,type-arg,unused-ignore]
    """Compiles before a wheel is put together, an editable one included."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say that the wheel is for this platform, and for every Python of it."""
        if self.target_name != "wheel":
            return
        builder = load_builder()
        try:
            library = builder.build()
        except (builder.CompilerError, OSError) as e:
            self.app.display_warning(f"no C kernels: {e}; large libraries will be searched by numpy, more slowly")
            return
        build_data["artifacts"].append(library.relative_to(HERE).as_posix())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def load_builder() -> Any:
    """The package's own builder, as a module, before there is a package."""
    spec = importlib.util.spec_from_file_location("kernels_builder", BUILDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def platform_tag() -> str:
    """The platform in a wheel's name; a universal Python for macOS compiles for the processor it runs on."""
    name = sysconfig.get_platform()
    if sys.platform == "darwin":
        name = name.replace("universal2", os.uname().machine)
        name = re.sub(r"macosx-10\.\d+-arm64", "macosx-11.0-arm64", name)  # the first for these processors
    return name.replace("-", "_").replace(".", "_")
