"""A sample collection with known truth, made on the spot from photographs that ship in Python packages."""

from momentseek.demo.filming import make_films
from momentseek.demo.films import (
    DEMO_FILMS,
    DEMO_QUERIES,
    SLIDE_FILM,
    SLIDE_QUERY,
    SPOKEN_FILM,
    SPOKEN_QUERY,
    DemoFilm,
    DemoQuery,
    DemoScene,
)

__all__ = [
    "DEMO_FILMS",
    "DemoFilm",
    "DEMO_QUERIES",
    "DemoQuery",
    "DemoScene",
    "make_films",
    "SLIDE_FILM",
    "SLIDE_QUERY",
    "SPOKEN_FILM",
    "SPOKEN_QUERY",
]
