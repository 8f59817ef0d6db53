"""The basic types: moments, judgements and ranked runs of moments, captions, and the overlap of moments."""
