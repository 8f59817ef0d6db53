"""The Python face of Momentseek: what spans several rooms and is exported as ``momentseek.NAME``.

Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.api.library import Library

__all__ = ["Library"]

__getattr__ = late_names(__name__, {"Library": "library"})
