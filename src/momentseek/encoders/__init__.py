"""Encoders of texts and images behind small protocols; where weights come from and how they are verified."""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
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

__getattr__ = late_names(
    __name__,
    {
        "IMAGE_TEXT_ENCODERS": "registry",
        "ImageTextEncoder": "protocol",
        "Pixels": "protocol",
        "TEXT_ENCODERS": "registry",
        "TextEncoder": "protocol",
        "Vectors": "protocol",
        "WindowEncoder": "protocol",
        "encode_cached": "cached",
        "image_text_encoder": "registry",
        "register": "registry",
        "register_image_text": "registry",
        "text_encoder": "registry",
    },
)
