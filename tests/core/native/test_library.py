from __future__ import annotations

import re

import numpy as np
import pytest

from momentseek.core.native import build
from momentseek.core.native import kernels as library
from momentseek.core.native.kernels import ARGUMENTS, SIGNATURES, address, writable

LETTERS = {"int64_t": "n", "float": "f", "double": "d"}
needs_kernels = pytest.mark.skipif(library.kernels() is None, reason="needs the compiled kernels")


def test_signatures_match_the_c_sources():
    """The Python signature of each exported function matches its C source."""
    text = "\n".join(path.read_text() for path in build.sources())
    declared = {}
    for name, arguments in re.findall(r"^EXPORT int64_t (\w+)\(([^)]*)\)", text, re.MULTILINE):
        declared[name] = "".join("a" if "*" in each else LETTERS[each.split()[0]] for each in arguments.split(","))
    assert declared == {name: kinds.replace(" ", "") for name, kinds in SIGNATURES.items()}
    assert set("".join(declared.values())) <= set(ARGUMENTS)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 3), np.int16),
        np.zeros((2, 4), np.int8),
        np.zeros((3, 2), np.int8).T,
        np.zeros((4, 3), np.int8)[::2],
        np.zeros(6, np.int8),
    ],
)
def test_rejects_arrays_of_wrong_type_or_shape(wrong):
    with pytest.raises(TypeError, match="a kernel got an array"):
        address(wrong, np.int8, 2, 3)


def test_rejects_unaligned_arrays():
    raw = np.zeros(17, np.uint8)
    with pytest.raises(TypeError, match="aligned"):
        address(raw[1:].view(np.int64), np.int64, 2)


def test_rejects_writing_to_read_only_arrays():
    array = np.zeros(2, np.float32)
    assert writable(array, np.float32, 2) == address(array, np.float32, -1)
    array.flags.writeable = False
    with pytest.raises(TypeError, match="only to be read"):
        writable(array, np.float32, 2)


@needs_kernels
def test_generic_kernels_can_be_selected():
    wide = library.is_wide()
    with library.every_processor():
        assert not library.kernels().set_wide(0)
    assert library.is_wide() == wide


@pytest.mark.parametrize(("state", "error"), [(0, None), (1, IndexError), (2, MemoryError)])
def test_kernel_errors_are_raised(state, error):
    if error is None:
        library.call(lambda: state)
    else:
        with pytest.raises(error):
            library.call(lambda: state)
