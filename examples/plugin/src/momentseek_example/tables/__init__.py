"""Tables of this package: ``momentseek reproduce example-films``."""

from pathlib import Path

from momentseek.benchmarks.reproduction.paper_table import TABLES

TABLES.add("example-films", Path(__file__).with_name("example-films.toml"))
