"""A sample collection with known truth, made on the spot from photographs that ship in Python packages."""

from momentseek.demo.filming import make
from momentseek.demo.films import FILMS, QUERIES, Film, Query, Scene

__all__ = ["FILMS", "Film", "QUERIES", "Query", "Scene", "make"]
