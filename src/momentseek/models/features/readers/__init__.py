"""One file per kind of feature files."""
