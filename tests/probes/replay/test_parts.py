import pytest

from probes.parts import UnavailableError
from probes.timing import measure
from tests.probes.played import played

TIMES = {"launch_s": 2e-6, "round_trip_s": {"auto": {"p50": 7e-6, "p99": 40e-6}}, "after_idle_s": 90e-6}


def test_the_percentiles_are_those_written(tmp_path):
    with played(tmp_path, gpu=TIMES) as parts:
        found = measure(parts.clock, *parts.open_gpu().bind_empty())
    assert found.p50_s == pytest.approx(7e-6, rel=0.01)
    assert found.p99_s == pytest.approx(40e-6, rel=0.01)


def test_a_clock_that_costs_time_changes_no_percentile(tmp_path):
    with played(tmp_path, gpu=TIMES, clock={"now_s": 3e-7}) as parts:
        found = measure(parts.clock, *parts.open_gpu().bind_empty())
    assert found.overhead_s == pytest.approx(3e-7)
    assert found.p50_s == pytest.approx(7e-6, rel=0.01)


def test_idleness_shows_once(tmp_path):
    with played(tmp_path, gpu=TIMES) as parts:
        launch, wait = parts.open_gpu().bind_empty()
        launch(), wait()
        parts.clock.sleep(0.010)
        took = []
        for _ in range(2):
            start = parts.clock.now()
            launch(), wait()
            took.append(parts.clock.now() - start)
    assert took == pytest.approx([90e-6, 7e-6])


def test_a_load_changes_what_depends_on_it(tmp_path):
    with played(tmp_path, nvml={"temperature_c": {"before": 1, "during": 2, "after": 3}}) as parts:
        nvml, gpu = parts.open_nvml(), parts.open_gpu()
        gpu.bind_copy("down", 4, "pinned")()
        assert nvml.read("temperature_c") == 1
        gpu.bind_triad(2**30)[0]()
        assert nvml.read("temperature_c") == 2
        parts.clock.sleep(1)
        assert nvml.read("temperature_c") == 3


def test_the_pools_threshold_decides_what_memory_costs(tmp_path):
    with played(tmp_path, gpu={"alloc_free_s": {"at_zero": 3e-4, "at_maximum": 1e-5}}) as parts:
        gpu = parts.open_gpu()
        call = gpu.bind_alloc_free(2**20)
        took = []
        for threshold in (0, 2**64 - 1):
            gpu.set_pool_threshold(threshold)
            start = parts.clock.now()
            call()
            took.append(parts.clock.now() - start)
    assert took == pytest.approx([3e-4, 1e-5])


def test_what_was_not_recorded_is_unavailable(tmp_path):
    with played(tmp_path, nvml={"vbios": None, "busy": {"raises": "Unknown Error"}}) as parts:
        nvml = parts.open_nvml()
        with pytest.raises(UnavailableError, match="not in the recording"):
            nvml.read("vbios")
        with pytest.raises(UnavailableError, match="Unknown Error"):
            nvml.read("busy")


def test_a_tree_is_made_and_removed(tmp_path):
    files = {"etc/motd": "hello\n", "etc/link": {"link": "motd"}}
    with played(tmp_path, files=files) as parts:
        root = parts.root
        assert (root / "etc/link").read_text() == "hello\n"
    assert not root.exists()
