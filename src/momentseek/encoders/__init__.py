"""Encoders of texts and images behind small protocols; where weights come from and how they are verified."""

from momentseek.encoders.cached import encode_cached
from momentseek.encoders.protocol import ImageTextEncoder, Pixels, TextEncoder, Vectors, WindowEncoder
from momentseek.encoders.registry import (
    IMAGE_TEXT_ENCODERS,
    TEXT_ENCODERS,
    image_text_encoder,
    register,
    register_image_text,
    text_encoder,
)

__all__ = [
    "IMAGE_TEXT_ENCODERS",
    "ImageTextEncoder",
    "Pixels",
    "TEXT_ENCODERS",
    "TextEncoder",
    "Vectors",
    "WindowEncoder",
    "encode_cached",
    "image_text_encoder",
    "register",
    "register_image_text",
    "text_encoder",
]
