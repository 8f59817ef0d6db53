"""The modalities of clips that features describe, and how settings name them."""

from __future__ import annotations

from momentseek.errors import MomentseekError

MODALITIES = ("video", "subtitle")


def parse_modalities(text: str) -> tuple[str, ...]:
    """The modalities that a setting such as ``video+subtitle`` names, in the order in which it names them.

    >>> parse_modalities("subtitle+video")
    ('subtitle', 'video')
    """
    names = tuple(text.split("+"))
    if set(names) - set(MODALITIES) or len(set(names)) < len(names):
        raise MomentseekError(f"model: modalities must be video, subtitle or video+subtitle, not {text!r}")
    return names
