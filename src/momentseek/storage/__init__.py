"""Files elsewhere: whatever fsspec opens (``s3://bucket/films``), fetched to this machine when they are needed."""
