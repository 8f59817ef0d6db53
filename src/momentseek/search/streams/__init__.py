"""The three ways in which a query finds moments: what is seen, what is said, and what the file is called."""
