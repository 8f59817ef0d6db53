"""A sample collection with known truth, made from photographs that ship in Python packages."""
