"""Text encoders behind a small protocol; where weights come from and how they are verified."""

from momentseek.encoders.cached import encode_cached
from momentseek.encoders.protocol import TextEncoder, Vectors
from momentseek.encoders.registry import TEXT_ENCODERS, register, text_encoder

__all__ = ["TEXT_ENCODERS", "TextEncoder", "Vectors", "encode_cached", "register", "text_encoder"]
