"""Reproduce the papers' tables: train every row over seeds, and show our figures next to the printed ones."""
