import pytest

from probes.checks.link import LinkProbe
from tests.probes.played import checks_of

NO_GPU = {"raises": "no CuPy"}


def test_a_full_link_passes(tmp_path):
    found = checks_of(LinkProbe(), tmp_path)
    assert {check.verdict for check in found.values()} == {"pass"}
    assert found["link-generation"].value == 1


@pytest.mark.parametrize(("width", "verdict"), [(16, "pass"), (8, "fail"), (1, "fail")])
def test_fewer_lanes_than_it_has(tmp_path, width, verdict):
    check = checks_of(LinkProbe(), tmp_path, nvml={"link_width": width})["link-width"]
    assert (check.value, check.verdict) == (width / 16, verdict)


def test_the_generation_counts_under_load(tmp_path):
    """An idle link is slow on every healthy host."""
    moments = {"before": 1, "during": 4, "after": 1}
    check = checks_of(LinkProbe(), tmp_path, nvml={"link_generation": moments})["link-generation"]
    assert (check.value, check.verdict) == (0.8, "warn")


def test_without_a_gpu_only_what_an_idle_link_proves(tmp_path):
    found = checks_of(LinkProbe(), tmp_path, gpu=NO_GPU)
    assert {name: check.verdict for name, check in found.items()} == {
        "link-width": "pass",
        "link-generation": "unknown",
        "pcie-replays": "unknown",
    }
    assert "no CuPy" in found["link-generation"].why


def test_replays_are_counted_while_copying_only(tmp_path):
    quiet = checks_of(LinkProbe(), tmp_path, nvml={"pcie_replays": 10**6})["pcie-replays"]
    assert (quiet.value, quiet.verdict) == (0, "pass")
    noisy = checks_of(LinkProbe(), tmp_path, nvml={"pcie_replays": {"start": 0, "per_load_second": 10}})["pcie-replays"]
    assert noisy.value == pytest.approx(600, rel=0.2)
    assert noisy.verdict == "warn"


def test_each_reading_fails_by_itself(tmp_path):
    found = checks_of(LinkProbe(), tmp_path, nvml={"link_width_max": {"raises": "Unknown Error"}, "pcie_replays": None})
    assert [check.verdict for check in found.values()] == ["unknown", "pass", "unknown"]
    assert "Unknown Error" in found["link-width"].why
