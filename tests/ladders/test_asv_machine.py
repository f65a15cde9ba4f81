import json
import os
import platform

import pytest
from asv.machine import Machine
from typer.testing import CliRunner

from ladders.cli import app
from probes.passport import take_passport


def asv_machine(*arguments):
    return CliRunner().invoke(app, ["asv-machine", *map(str, arguments)])


def test_asv_reads_what_is_written(tmp_path):
    path = tmp_path / "machine.json"
    assert asv_machine("--file", path).exit_code == 0
    machine = Machine.load(_path=str(path))
    passport = take_passport()
    assert machine.machine.endswith(passport["digest"][:8])
    assert machine.passport == passport["digest"]
    assert machine.cpu == passport["host"]["processor"]
    assert machine.arch == platform.machine()
    assert machine.ram == str(passport["host"]["memory_bytes"])
    assert machine.gpu == (passport["gpu"]["name"] if passport["gpu"] else "none")
    assert machine.driver == (passport["gpu"]["driver"] if passport["gpu"] else "none")
    assert len(machine.passport_class) == 8


def test_goes_into_the_home_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert asv_machine().exit_code == 0
    assert platform.node() in json.loads((tmp_path / ".asv-machine.json").read_text())


def test_other_machines_are_kept_and_our_own_is_replaced(tmp_path):
    path = tmp_path / "machine.json"
    other = {"machine": "node-7", "ram": "1"}
    path.write_text(json.dumps({"node-7": other, platform.node(): {"machine": "before"}, "version": 1}))
    assert asv_machine("--file", path).exit_code == 0
    found = json.loads(path.read_text())
    assert found["node-7"] == other
    assert found[platform.node()]["machine"] != "before"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\x00"])
def test_a_damaged_file_is_left_and_named(tmp_path, text):
    path = tmp_path / "machine.json"
    path.write_text(text)
    result = asv_machine("--file", path)
    assert result.exit_code == 2
    assert str(path) in result.output
    assert "--file" in result.output
    assert path.read_text() == text


@pytest.mark.parametrize("path", ["missing/machine.json", "taken"])
def test_a_place_that_cannot_be_written_is_said(tmp_path, path):
    (tmp_path / "taken").mkdir()
    result = asv_machine("--file", tmp_path / path)
    assert result.exit_code == 2
    assert "cannot write" in result.output
    assert os.listdir(tmp_path) == ["taken"]
