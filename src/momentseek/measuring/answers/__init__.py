"""Parse the prose answers of multimodal language models into moments, and count unusable answers by reason."""
