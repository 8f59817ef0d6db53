"""Find moments: the query language, streams, localisers, fusion, confidence and exports of hits."""
