"""The collection on disk: catalog, segments of vectors, ingest, and the scan over them."""
