"""A sample collection with known truth, made on the spot from photographs that ship in Python packages."""

from momentseek.demo.films import FILMS, QUERIES, Film, Scene
from momentseek.demo.make import make

__all__ = ["FILMS", "Film", "QUERIES", "Scene", "make"]
