"""Localisers: turn a curve of clip scores into ranked spans, one file each (docs/architecture.md)."""
