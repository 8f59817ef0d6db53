from hypothesis import given
from hypothesis import strategies as st

from momentseek.recognition.protobuf import varint_field


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_hold_any_64_bit_number(value):
    encoded = varint_field(1, value)[1:]
    assert sum((byte & 0x7F) << 7 * at for at, byte in enumerate(encoded)) == value % 2**64
    assert all(byte & 0x80 for byte in encoded[:-1])
    assert not encoded[-1] & 0x80
