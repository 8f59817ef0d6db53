"""The ways in which a query finds moments: what is seen, said, written, described, heard, and file names."""
