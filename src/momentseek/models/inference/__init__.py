"""Search with a trained model: encode the corpus once, rank videos, then rank moments, in bounded memory."""
