"""What a sentence says of who does what: small rules and, where it is installed, a parser. Imports nothing of ours."""
