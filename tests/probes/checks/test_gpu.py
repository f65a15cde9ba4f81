from dataclasses import replace

import pytest

from probes.checks.gpu import IDENTITY, GpuProbe, IdentityProbe, NumaProbe
from probes.live.parts import live_parts
from probes.parts import GpuModel, UnavailableError
from probes.probe import outcome
from probes.thresholds import load_thresholds

THRESHOLDS = load_thresholds()

CARD = {
    "name": "NVIDIA H200",
    "uuid": "GPU-1b2c3d4e-0000-1111-2222-333344445555",
    "vbios": "96.00.BC.00.01",
    "driver_version": "580.126.20",
    "memory_total_bytes": 150_754_820_096,
    "mig_mode": False,
    "pci_bus_id": "00000000:3B:00.0",
}


class Card:
    """The two parts of one card, as far as these probes ask."""

    model = GpuModel(
        "NVIDIA H200", CARD["uuid"], CARD["pci_bus_id"], (9, 0), 132, 1.98e9, 150 * 10**9, None, (13, 0), (12, 9)
    )

    def __init__(self, fields):
        self._fields = fields

    def read(self, field):
        if field not in self._fields:
            raise UnavailableError(f"{field} is not supported")
        return self._fields[field]


def refuse(why):
    def open_part():
        raise UnavailableError(why)

    return open_part


@pytest.fixture
def host(tmp_path):
    parts = replace(live_parts("auto", 1), root=tmp_path, affinity=tuple(range(16)), libraries={})
    return replace(parts, open_gpu=refuse("no CuPy"), open_nvml=refuse("NVML is not here"))


def write(host, name, text=""):
    (host.root / name).parent.mkdir(parents=True, exist_ok=True)
    (host.root / name).write_text(text)


def gpu_check(host):
    (check,) = outcome(GpuProbe(), host, THRESHOLDS)
    return check


def test_an_open_card_passes_by_name(host):
    check = gpu_check(replace(host, open_gpu=lambda: Card(CARD)))
    assert (check.verdict, check.value) == ("pass", "NVIDIA H200")
    assert check.why == "sm_90, 132 processors"


def test_no_trace_of_a_driver_is_a_failure(host):
    check = gpu_check(host)
    assert (check.verdict, check.why) == ("fail", "no NVIDIA GPU, and no driver that serves one here")


def test_a_card_on_the_bus_that_no_driver_serves(host):
    write(host, "sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n")
    write(host, "sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n")
    assert gpu_check(host).why == "an NVIDIA device on the PCI bus, and no driver that serves one here"


@pytest.mark.parametrize("trace", ["proc/driver/nvidia/version", "dev/nvidia0", "dev/nvidiactl"])
def test_a_driver_without_cupy_is_a_warning_with_the_remedy(host, trace):
    write(host, trace)
    check = gpu_check(host)
    assert check.verdict == "warn"
    assert f"/{trace} is here" in check.why
    assert "pip install" in check.why


def test_a_driver_that_cuda_cannot_use_is_a_failure(host):
    seen = replace(
        host, open_nvml=lambda: Card(CARD), open_gpu=refuse("cudaErrorUnknown"), libraries={"cupy-cuda12x": "13.6"}
    )
    check = gpu_check(seen)
    assert check.verdict == "fail"
    assert check.why == "NVML shows a NVIDIA H200, but CUDA cannot use it: cudaErrorUnknown"


def test_the_identity_hashes_the_uuid(host):
    made = {
        check.name: check.value
        for check in outcome(IdentityProbe(), replace(host, open_nvml=lambda: Card(CARD)), THRESHOLDS)
    }
    assert made["gpu-name"] == "NVIDIA H200"
    assert made["gpu-mig"] is False
    assert len(made["gpu-uuid"]) == 16
    assert "1b2c3d4e" not in str(made)


def test_each_field_of_the_identity_is_unknown_by_itself(host):
    fields = {name: value for name, value in CARD.items() if name != "vbios"}
    made = {
        check.name: check
        for check in outcome(IdentityProbe(), replace(host, open_nvml=lambda: Card(fields)), THRESHOLDS)
    }
    assert [name for name, check in made.items() if check.verdict == "unknown"] == ["gpu-vbios"]
    assert {check.verdict for check in outcome(IdentityProbe(), host, THRESHOLDS)} == {"unknown"}
    assert len(made) == len(IDENTITY)


@pytest.mark.parametrize(
    ("node", "cpus", "verdict", "value"),
    [
        ("1", "16-31,48-63", "warn", 1),
        ("0", "0-15", "pass", 0),
        ("0", "8", "pass", 0),
        ("-1", "0-63", "pass", -1),
        ("x", "0", "unknown", None),
    ],
)
def test_the_cards_node(host, node, cpus, verdict, value):
    write(host, "sys/bus/pci/devices/0000:3b:00.0/numa_node", f"{node}\n")
    write(host, "sys/bus/pci/devices/0000:3b:00.0/local_cpulist", f"{cpus}\n")
    (check,) = outcome(NumaProbe(), replace(host, open_nvml=lambda: Card(CARD)), THRESHOLDS)
    assert (check.verdict, check.value) == (verdict, value)


def test_a_card_that_sysfs_hides(host):
    (check,) = outcome(NumaProbe(), replace(host, open_nvml=lambda: Card(CARD)), THRESHOLDS)
    assert check.verdict == "unknown"
