"""TensorBoard's event files, written without TensorBoard.

An event file is a row of records: the length of the data (8 bytes, little-endian), a checksum of it, the data, a
checksum of them. Checksums are CRC-32C, rotated and shifted by a constant ("masked"). The data are ``Event`` messages
of protocol buffers, of which scalars need four fields: time (1, double), step (2, varint), and ``summary`` (5) with
``value`` (1) of ``tag`` (1) and ``simple_value`` (2, float). A first record names the version (3).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path

from momentseek.protobuf import bytes_field, double_field, float_field, text_field, varint_field

_POLYNOMIAL = 0x82F63B78
_TABLE = []
for _byte in range(256):
    _value = _byte
    for _ in range(8):
        _value = _value >> 1 ^ (_POLYNOMIAL if _value & 1 else 0)
    _TABLE.append(_value)


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli) checksum of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


class EventFile:
    """A new event file of TensorBoard in ``folder``; every record is on disk when ``add`` returns.

    Started at a ``step`` above 0 (training continues), it makes readers drop what older files say about later steps.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        count = len(list(folder.glob("events.out.tfevents.*")))
        self.path = folder / f"events.out.tfevents.{int(time.time())}.momentseek.{count}"
        self._file = self.path.open("ab")
        self._write(bytes_field(3, b"brain.Event:2"), 0)
        if step:
            self._write(bytes_field(7, varint_field(1, 1)), step)  # session log: START, which purges steps from here on

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """Add the values of a step, by tag."""
        values = b"".join(bytes_field(1, text_field(1, tag) + float_field(2, value)) for tag, value in scalars.items())
        self._write(bytes_field(5, values), step)

    def close(self) -> None:
        """Close the event file."""
        self._file.close()

    def _write(self, message: bytes, step: int) -> None:
        event = double_field(1, time.time()) + varint_field(2, step) + message
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked_checksum(length) + event + _masked_checksum(event))
        self._file.flush()


def _masked_checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
