import pytest

from probes.parts import UnavailableError
from probes.pci import find_gpu, ports_above, sysfs_address
from tests.probes.played import CARD, PORT, played

ABSENT = {"raises": "no driver"}


@pytest.mark.parametrize("bus_id", ["00000000:3B:00.0", "0000:3b:00.0", "0:3B:00.0"])
def test_every_way_of_writing_an_address(bus_id):
    assert sysfs_address(bus_id) == "0000:3b:00.0"


def test_a_domain_of_more_digits_stays():
    assert sysfs_address("00010000:3B:00.0") == "10000:3b:00.0"


def test_the_card_that_nvml_names(tmp_path):
    with played(tmp_path) as parts:
        assert find_gpu(parts) == (parts.root / CARD).resolve()
        assert ports_above(find_gpu(parts)) == [(parts.root / PORT).resolve()]


def test_the_only_card_without_nvml(tmp_path):
    with played(tmp_path, nvml=ABSENT) as parts:
        assert find_gpu(parts) == (parts.root / CARD).resolve()


def test_two_cards_and_no_one_to_say_which(tmp_path):
    other = "sys/bus/pci/devices/0000:af:00.0"
    files = {f"{other}/vendor": "0x10de\n", f"{other}/class": "0x030200\n"}
    with played(tmp_path, nvml=ABSENT, files=files) as parts, pytest.raises(UnavailableError, match="2 NVIDIA GPUs"):
        find_gpu(parts)


def test_a_sound_device_is_no_card(tmp_path):
    with (
        played(tmp_path, nvml=ABSENT, files={f"{CARD}/class": "0x040300\n"}) as parts,
        pytest.raises(UnavailableError, match="no NVIDIA GPU"),
    ):
        find_gpu(parts)


def test_sysfs_hidden(tmp_path):
    link = "sys/bus/pci/devices/0000:3b:00.0"
    with played(tmp_path, files={link: None}) as parts, pytest.raises(UnavailableError, match="hidden"):
        find_gpu(parts)
    with (
        played(tmp_path, nvml=ABSENT, files={link: None}) as parts,
        pytest.raises(UnavailableError, match="cannot be read"),
    ):
        find_gpu(parts)
