"""The ways in which a query finds moments, one stream each: what is seen, what is said, what the file is called."""
