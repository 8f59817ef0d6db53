"""Protocol Buffers messages as bytes, for the few formats that need them (ONNX, TensorBoard's events).

A message is a sequence of fields, each a key ``number << 3 | wire type`` and its value, where wire type 0 is a varint,
1 eight bytes, 2 a length and that many bytes, 5 four bytes (the protobuf manual's page "Encoding"). The packages
``protobuf`` and ``onnx`` could do this too, for 30 MB.
"""

from __future__ import annotations

import struct


def varint_field(number: int, value: int) -> bytes:
    """A field with an integer, true/false or enumerated value."""
    return _key(number, 0) + _varint(value)


def double_field(number: int, value: float) -> bytes:
    """A field with a 64-bit floating-point value."""
    return _key(number, 1) + struct.pack("<d", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field with bytes, or with the bytes of another message."""
    return _key(number, 2) + _varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A field with a text.

    >>> text_field(2, "momentseek")
    b'\\x12\\nmomentseek'
    """
    return bytes_field(number, value.encode())


def float_field(number: int, value: float) -> bytes:
    """A field with a 32-bit floating-point value."""
    return _key(number, 5) + struct.pack("<f", value)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, low ones first; the top bit says that more follow; a negative number is its 64-bit complement.

    >>> _varint(300).hex(), len(_varint(-1))
    ('ac02', 10)
    """
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
