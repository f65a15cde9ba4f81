from pathlib import Path

from probes.checks.gpu import IDENTITY
from probes.identity import TRACES, gpu_of, gpu_of_this_host
from probes.thresholds import load_thresholds

THRESHOLDS = load_thresholds()


def test_the_card_is_what_its_checks_say():
    checks = [
        THRESHOLDS.state("gpu-name", "NVIDIA H200", "pass", ""),
        THRESHOLDS.unknown("gpu-vbios", "not supported"),
        THRESHOLDS.judge("load", 1),
    ]
    card = gpu_of(checks)
    assert card.keys() == {name.removeprefix("gpu-") for name in IDENTITY}
    assert {name: value for name, value in card.items() if value is not None} == {"name": "NVIDIA H200"}


def test_no_card_is_none():
    assert gpu_of([]) is None
    assert gpu_of([THRESHOLDS.unknown(name, "NVML cannot be opened") for name in IDENTITY]) is None


def test_this_host_is_asked_only_if_it_shows_a_driver():
    driver = any((Path("/") / trace).exists() for trace in TRACES)
    assert (gpu_of_this_host() is not None) == driver
