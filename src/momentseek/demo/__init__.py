"""A sample collection with known truth, made on the spot from photographs that ship in Python packages."""

from momentseek.demo.filming import make
from momentseek.demo.films import FILMS, QUERIES, DemoFilm, DemoQuery, DemoScene

__all__ = ["FILMS", "DemoFilm", "QUERIES", "DemoQuery", "DemoScene", "make"]
