"""The real pynvml over a library of known answers: names, signatures and units, without a driver."""

import ast
import ctypes
import inspect
import subprocess
from pathlib import Path

import pynvml
import pytest

from probes.live import nvml
from probes.live.nvml import FIELDS, open_nvml
from probes.parts import UnavailableError

READS = {
    "name": "NVIDIA H200",
    "uuid": "GPU-0000",
    "pci_bus_id": "00000000:3B:00.0",
    "vbios": "96.00",
    "driver_version": "580.126.20",
    "driver_cuda": "12.8",
    "memory_total_bytes": 1000,
    "memory_used_bytes": 100,
    "mig_mode": False,
    "busy": 0.25,
    "processes": [{"pid": 77, "memory_bytes": 4096}],
    "link_generation": 1,
    "link_generation_max": 5,
    "link_width": 8,
    "link_width_max": 16,
    "pcie_replays": 3,
    "ecc_uncorrected_volatile": 5,
    "ecc_uncorrected_aggregate": 6,
    "sram_threshold_exceeded": True,
    "rows_remapped_uncorrectable": 2,
    "row_remap_pending": True,
    "row_remap_failed": False,
    "pages_retired": 3,
    "sm_clock_hz": 1.98e9,
    "sm_clock_max_hz": 1.985e9,
    "event_reasons": ["power-cap", "hardware-thermal"],
    "power_limit_w": 450,
    "power_limit_default_w": 700,
    "temperature_c": 41,
    "persistence": True,
}


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    return library


@pytest.fixture
def driver(stub, monkeypatch):
    """As if the library had been found where a driver puts it."""
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(stub)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_every_field_is_read_in_its_unit(driver):
    card = open_nvml()
    assert {name: card.read(name) for name in READS} == READS
    assert FIELDS.keys() - READS.keys() == {"page_retirement_pending"}


def test_what_the_card_does_not_support_is_said_in_nvmls_words(driver):
    with pytest.raises(UnavailableError, match="page_retirement_pending: Not Supported"):
        open_nvml().read("page_retirement_pending")


@pytest.mark.parametrize("chosen", ["0", "GPU-0000", "MIG-0000", "0,1"])
def test_the_visible_card_is_opened(driver, monkeypatch, chosen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert open_nvml().read("name") == "NVIDIA H200"


@pytest.mark.parametrize(("chosen", "said"), [("", "hides every GPU"), ("-1", "hides every GPU"), ("7", "Invalid")])
def test_a_card_that_is_not_there(driver, monkeypatch, chosen, said):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    with pytest.raises(UnavailableError, match=said):
        open_nvml()


def test_without_the_library_it_is_unavailable(monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda name: ctypes.CDLL("no-such-library.so"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(UnavailableError, match="NVML Shared Library Not Found"):
        open_nvml()


def test_nothing_is_ever_set():
    """NVML's functions that change something are named for it."""
    used = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(nvml)))
        if isinstance(node, ast.Attribute) and node.attr.startswith(("nvmlDevice", "nvmlSystem"))
    }
    assert len(used) > 20
    changing = ("Set", "Reset", "Clear", "Create", "Destroy", "Freeze", "Register", "Modify", "Remove")
    assert not [name for name in used if any(word in name for word in changing)]
