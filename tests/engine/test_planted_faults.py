"""A fault of each kernel family, planted and found; all of them with ``make faults`` (planted_faults.py says how)."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from engine.kernels import source_folder
from engine.kernels.headers import read_families

SCRIPT = Path(__file__).with_name("planted_faults.py")


def test_every_planted_fault_is_found_and_nothing_else():
    done = subprocess.run([sys.executable, SCRIPT, "--json"], capture_output=True, text=True)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verdict for verdict in verdicts if verdict["found_by"] != verdict["expected"]] == [], done.stderr
    assert done.returncode == 0, done.stderr
    found = [verdict for verdict in verdicts if verdict["found_by"] != "nothing"]
    assert {verdict["found_by"] for verdict in found} == {"bits", "threads"}
    assert len(found) >= 12


def test_every_kernel_file_has_a_fault_that_is_found():
    faults = tomllib.loads(SCRIPT.with_name("faults.toml").read_text())["fault"]
    found = {fault["file"] for fault in faults if fault["found_by"] != "nothing"}
    assert {family.file for family in read_families(source_folder())} <= found
