"""The papers' tables, made again: every row trained over seeds, our figures beside the printed ones.

A table is a file in ``tables/``; ``session.reproduce_table`` carries it out. Needs ``momentseek[train]``.
"""
