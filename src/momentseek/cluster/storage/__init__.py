"""Files elsewhere (``s3://bucket/films``, or whatever fsspec opens), fetched when they are needed."""
