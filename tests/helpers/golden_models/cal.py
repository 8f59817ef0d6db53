"""CAL beside its public implementation, which is MCN's."""

from __future__ import annotations

from golden_models.mcn import compare

__all__ = ["compare"]
