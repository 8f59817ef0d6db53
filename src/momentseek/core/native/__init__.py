"""Kernels in C, for loops that numpy has no words for; where they are not built, numpy does the same more slowly."""

from __future__ import annotations
