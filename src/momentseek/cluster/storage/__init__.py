"""Remote files (``s3://bucket/films``, or any address that fsspec opens), fetched when they are needed."""
