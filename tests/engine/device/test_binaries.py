"""A binary is compiled once, whole or not at all."""

import pytest

from engine.device.binaries import binary_directory, cached_binary


def test_the_second_call_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_KERNEL_DIR", str(tmp_path / "kernels"))
    compiled = []

    def compile_it():
        compiled.append(1)
        return b"\x7fELF"

    paths = {cached_binary(name, compile_it) for name in ("sm_90-a", "sm_90-a", "sm_90-b")}
    assert {path.read_bytes() for path in paths} == {b"\x7fELF"}
    assert (len(paths), len(compiled)) == (2, 2)
    assert {path.name for path in (tmp_path / "kernels").iterdir()} == {"sm_90-a", "sm_90-b"}


def test_a_failed_compilation_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_KERNEL_DIR", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        cached_binary("name", lambda: bytes(1 // 0))
    assert list(tmp_path.iterdir()) == []


def test_where_the_cache_cannot_be_written_a_temporary_file_serves(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DYNO_KERNEL_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = cached_binary("name", lambda: b"binary")
    assert path.read_bytes() == b"binary"
    assert path.name == "name"


def test_the_platform_has_a_place_for_it(monkeypatch):
    monkeypatch.delenv("DYNO_KERNEL_DIR", raising=False)
    assert "gbt-dyno" in str(binary_directory())
