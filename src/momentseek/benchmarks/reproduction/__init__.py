"""The papers' tables computed again: every row trained over seeds, our figures next to the printed ones."""
