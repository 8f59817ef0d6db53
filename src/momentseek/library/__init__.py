"""One collection on disk: catalog, segments of vectors, tracks of timed text, ingest and the scan over them."""
