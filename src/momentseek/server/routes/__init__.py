"""The API's routes, one file per subject; each has a ``router``."""
