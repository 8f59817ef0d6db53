"""C kernels for loops that numpy cannot express; if they are not built, numpy does the same more slowly."""

from __future__ import annotations
