"""What a PCIe link can carry, told by NVML or by sysfs."""

import pytest

from probes.checks.link_peak import link_peak
from probes.parts import UnavailableError
from tests.probes.emulated_cuda import EmulatedCuda, parts_of

pytestmark = pytest.mark.usefixtures("on_emulator")


def tree(root, speed="32.0 GT/s PCIe", width="16"):
    folder = root / "sys/bus/pci/devices/0000:17:00.0"
    folder.mkdir(parents=True)
    (folder / "max_link_speed").write_text(f"{speed}\n")
    (folder / "current_link_width").write_text(f"{width}\n")
    return root


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"), [(1, 16, 4.0), (3, 4, 3.94), (4, 16, 31.5), (5, 16, 63.0), (6, 16, 121.0)]
)
def test_by_nvml(generation, width, gigabytes):
    parts = parts_of(EmulatedCuda(), nvml={"link_generation_max": generation, "link_width": width})
    peak = link_peak(parts, "0000:17:00.0")
    assert peak.bytes_s / 1e9 == pytest.approx(gigabytes, rel=0.01)
    assert f"PCIe {generation} x{width}" in peak.words


@pytest.mark.parametrize("name", ["0000:17:00.0", "00000000:17:00.0", "0000:17:00.0".upper()])
def test_by_sysfs_where_nvml_is_absent(tmp_path, name):
    peak = link_peak(parts_of(EmulatedCuda(), root=tree(tmp_path, "16.0 GT/s PCIe", "8")), name)
    assert (peak.generation, peak.width) == (4, 8)


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "16"), ("32.0 GT/s PCIe", "x"), ("", ""), ("8.0 GT/s", "0")])
def test_what_no_one_can_read_is_unknown(tmp_path, speed, width):
    parts = parts_of(EmulatedCuda(), root=tree(tmp_path, speed, width))
    with pytest.raises(UnavailableError, match=r"does not tell|no link that is known"):
        link_peak(parts, "0000:17:00.0")


def test_a_generation_of_the_future_is_unknown():
    parts = parts_of(EmulatedCuda(), nvml={"link_generation_max": 9, "link_width": 16})
    with pytest.raises(UnavailableError, match="PCIe generation 9 x16 is no link"):
        link_peak(parts, "0000:17:00.0")
