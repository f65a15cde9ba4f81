import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from engine import modelfile
from engine.errors import ModelError
from engine.modelfile import HEADER_KEY, pack, unpack, write_whole

ARRAYS = {"values": np.linspace(0, 1, 5), "counts": np.arange(3, dtype=np.int32), "none": np.empty(0, dtype=np.uint8)}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda key: key not in ("digest", "version")), json_values, max_size=4))
def test_content_comes_back_and_has_one_form(header):
    data = pack(header, ARRAYS)
    found, arrays = unpack(data)
    assert found == header
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert pack(found, arrays) == data


def test_text_that_looks_like_the_digest_does_not_confuse_it():
    for name in ("0" * 64, json.loads(header_text(pack({}, ARRAYS)))["digest"]):
        assert unpack(pack({"a": name, name: name}, ARRAYS))[0] == {"a": name, name: name}


def test_any_changed_byte_is_refused():
    data = pack({"names": ["a", "é", "\ud800"], "number": 0.1}, ARRAYS)
    for at in range(len(data)):
        for flip in (0x01, 0x20, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            with pytest.raises(ModelError):
                unpack(bytes(damaged))


def test_any_missing_or_added_tail_is_refused():
    data = pack({"number": 1}, ARRAYS)
    for length in range(len(data)):
        with pytest.raises(ModelError):
            unpack(data[:length])
    for tail in (b"\0", b" ", data):
        with pytest.raises(ModelError):
            unpack(data + tail)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(data):
    with pytest.raises(ModelError):
        unpack(data)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("{}", "unknown version"),
        ('{"version":2}', "unknown version"),
        ('{"version":1}', "damaged"),
        ('{"version":1,"digest":null}', "damaged"),
        ('{"version":1,"digest":""}', "damaged"),
        ('{"version":1,"digest":"\\ud800"}', "damaged"),
        ("[]", "not an object"),
        ("", "no readable"),
        ("[" * 100_000, "no readable"),
    ],
)
def test_a_strange_header_is_refused_with_the_reason(header, reason):
    with pytest.raises(ModelError, match=reason):
        unpack(safetensors.numpy.save(ARRAYS, {HEADER_KEY: header}))


def test_safetensors_of_someone_else_is_refused():
    for metadata in (None, {"format": "pt"}):
        with pytest.raises(ModelError, match="no readable"):
            unpack(safetensors.numpy.save(ARRAYS, metadata))


def test_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "model"
    for content in (b"first", b"second, longer", b""):
        write_whole(target, content)
        assert target.read_bytes() == content
        assert os.listdir(tmp_path) == ["model"]


def test_write_follows_a_link_and_keeps_to_the_umask(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "link", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


@pytest.mark.parametrize("make", [lambda p: p / "absent" / "model", lambda p: p, lambda p: p / "file" / "model"])
def test_where_nothing_can_be_written_the_error_says_where_and_what_to_do(tmp_path, make):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(OSError, match=r"cannot save to '.*': .*; its directory must exist, be writable"):
        write_whole(make(tmp_path), b"content")
    assert os.listdir(tmp_path) == ["file"]
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*.tmp"))


def run_write(target: Path, setup: str) -> str:
    """What `write_whole` of 64 kB says in a process of its own, after `setup`."""
    code = (
        "import os, resource, sys; from pathlib import Path; from engine.modelfile import write_whole\n"
        f"{setup}\n"
        "try: write_whole(Path(sys.argv[1]), b'x' * 65536)\n"
        "except OSError as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout


def test_a_full_disk_keeps_the_old_file(tmp_path):
    (tmp_path / "model").write_bytes(b"old")
    said = run_write(tmp_path / "model", "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))")
    assert "cannot save to" in said
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"


def test_a_read_only_directory_is_named():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o555)
        # Root may write anywhere: become nobody.
        said = run_write(Path(directory, "model"), "os.geteuid() == 0 and os.setuid(65534)")
        assert said.startswith("PermissionError")
        assert directory in said
        assert os.listdir(directory) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_interrupted_it_keeps_the_old_file(tmp_path, monkeypatch, call):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "model").write_bytes(b"old")
    monkeypatch.setattr(modelfile.os, call, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "model", b"new")
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"


def header_text(data: bytes) -> str:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length])["__metadata__"][HEADER_KEY]
