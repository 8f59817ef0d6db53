"""Statistics and checks of any dataset (TVR Table 1, TVR-Ranking Tables 1 and 4)."""
