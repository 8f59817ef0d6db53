"""Momentseek: natural-language search for moments in videos, and the measures to judge it."""

__version__ = "0.1.0"
