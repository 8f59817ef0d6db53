"""Ask vision models behind OpenAI-compatible endpoints for moments and for judgements of relevance."""
