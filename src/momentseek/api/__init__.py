"""The Python face of Momentseek: what spans several rooms and is exported as ``momentseek.NAME``.

Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.api.library import Library
    from momentseek.api.opening import open_library

__all__ = ["Library", "open_library"]

__getattr__ = late_names(__name__, {"Library": "library", "open_library": "opening"})
