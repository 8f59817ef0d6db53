"""The offline image-text encoder: what 1,000 labels can say about an image, in the space of a sentence encoder."""
