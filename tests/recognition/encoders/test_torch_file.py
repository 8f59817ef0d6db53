import pickle

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.network import read_tensors

# torch 2.13: torch.save({"a": torch.arange(6.0).reshape(2, 3).t()}, file, _use_new_zipfile_serialization=False)
FILE = bytes.fromhex(
    "80028a0a6cfc9c46f9206aa850192e80024de9032e80027d710028581000000070726f746f636f6c5f76657273696f6e7101"
    "4de903580d0000006c6974746c655f656e6469616e710288580a000000747970655f73697a657371037d7104285805000000"
    "73686f727471054b025803000000696e7471064b0458040000006c6f6e6771074b0475752e80027d71005801000000617101"
    "63746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a71022828580700000073746f7261676571"
    "0363746f7263680a466c6f617453746f726167650a7104580e00000039343931353230303830343934347105580300000063"
    "707571064b064e747107514b004b034b028671084b014b038671098963636f6c6c656374696f6e730a4f7264657265644469"
    "63740a710a2952710b74710c52710d732e80025d7100580e00000039343931353230303830343934347101612e0600000000"
    "000000000000000000803f0000004000004040000080400000a040"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.pth"


def test_tensors_are_read_as_torch_wrote_them(path):
    path.write_bytes(FILE)
    found = read_tensors(path)
    assert list(found) == ["a"]
    np.testing.assert_array_equal(found["a"], np.arange(6.0).reshape(2, 3).T)
    assert found["a"].dtype == np.float32


def test_rejects_truncated_files(path):
    for length in range(len(FILE)):
        path.write_bytes(FILE[:length])
        with pytest.raises(MomentseekError, match="is no file of named tensors"):
            read_tensors(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"ctorch\nFloatStorage\n", b"cposix\nsystem\n", "asks for posix.system"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n", b"cbuiltins\neval\n", "asks for builtins.eval"),
        (b"storageq", b"memory!q", "unknown kind"),
        (b"K\x03K\x02\x86", b"K\x09K\x02\x86", "reaches past"),
        (b"K\x00K\x03K\x02", b"K\x01K\x03K\x02", "reaches past"),
        (b"\x8a\x0a\x6c", b"\x8a\x0a\x6d", "does not begin"),
        (b"a." + b"\x06\x00", b"a." + b"\x05\x00", "cut off"),
    ],
)
def test_hostile_or_damaged_files_are_refused_without_running_them(path, old, new, message):
    changed = FILE.replace(old, new)
    assert changed != FILE
    path.write_bytes(changed)
    with pytest.raises(MomentseekError, match=message):
        read_tensors(path)


def test_other_pickles_and_missing_files(path):
    with pytest.raises(MomentseekError, match="cannot be read"):
        read_tensors(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(MomentseekError, match="does not begin"):
        read_tensors(path)
