"""Who does what in a sentence: small rules and, where it is installed, a parser (spaCy)."""
