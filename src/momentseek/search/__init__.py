"""Finding moments: query language, two-stage ranking, fusion, confidence and the span localisers."""
