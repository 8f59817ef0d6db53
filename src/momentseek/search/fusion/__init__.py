"""Fusion: what several streams found, made one ranking of moments.

Importing this package registers every way to fuse; docs/searching.md says how they work.
"""

from momentseek.search.fusion import rrf, scores  # noqa: F401
from momentseek.search.fusion.candidate import Candidate
from momentseek.search.fusion.overlap import distinct, same
from momentseek.search.fusion.registry import DEFAULT, FUSIONS, Fusion, fusion, ranked, register
from momentseek.search.fusion.rrf import K

__all__ = [
    "DEFAULT",
    "FUSIONS",
    "Candidate",
    "Fusion",
    "K",
    "distinct",
    "fusion",
    "ranked",
    "register",
    "same",
]
