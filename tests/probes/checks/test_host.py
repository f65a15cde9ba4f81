from dataclasses import replace

import pytest

from probes.checks.host import HostProbe, throttled_percent
from probes.cores import Throttling
from probes.live.parts import live_parts
from probes.probe import outcome
from probes.thresholds import load_thresholds

THRESHOLDS = load_thresholds()

HEALTHY = {
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/cpu.max": "1600000 100000\n",
    "sys/fs/cgroup/cpu.stat": "nr_periods 1000\nnr_throttled 5\nthrottled_usec 90000\n",
    "sys/fs/cgroup/memory.max": "max\n",
    "proc/stat": "cpu  90 1 5 800 0 0 0 0 0 0\n" + "".join(f"cpu{i} 0 0 0 0 0 0 0 0 0 0\n" for i in range(128)),
    "proc/meminfo": "MemTotal:       131072000 kB\nMemAvailable:   120000000 kB\n",
    "proc/loadavg": "1.50 1.00 0.50 2/900 12345\n",
    "proc/cpuinfo": "processor : 0\nmodel name\t: AMD EPYC 9554\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}


@pytest.fixture
def probed(tmp_path):
    """Probe a host with some files otherwise, or missing where None."""

    def probe(threads=8, affinity=tuple(range(16)), **otherwise):
        for name, text in (HEALTHY | {name.replace("__", "/"): text for name, text in otherwise.items()}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(text)
        parts = replace(live_parts("auto", threads), root=tmp_path, affinity=affinity)
        return {check.name: check for check in outcome(HostProbe(), parts, THRESHOLDS)}

    return probe


def test_a_healthy_host_passes_throughout(probed):
    made = probed()
    assert {name for name, check in made.items() if check.verdict != "pass"} == set()
    assert made["cpu-quota"].value == 8.0
    assert made["cpu-model"].value == "AMD EPYC 9554"
    assert made["memory-limit"].value == 125.0
    assert made["cpu-throttled"].value == 0.5
    assert made["load"].value == pytest.approx(100 * 1.5 / 128)


@pytest.mark.parametrize(("threads", "verdict"), [(15, "pass"), (16, "warn"), (17, "fail"), (128, "fail")])
def test_the_quota_is_held_against_the_threads(probed, threads, verdict):
    made = probed(threads=threads, affinity=tuple(range(128)))
    assert made["cpu-quota"].verdict == verdict
    assert f"16 cores' worth of time for {threads} threads" in made["cpu-quota"].why
    assert made["cpuset"].verdict == "pass"


def test_more_threads_than_cpus_fail(probed):
    made = probed(threads=9, affinity=tuple(range(8)))
    assert (made["cpuset"].verdict, made["cpuset"].value) == ("fail", -1.0)
    assert "8 CPUs for 9 threads" in made["cpuset"].why
    assert probed(affinity=None)["cpuset"].verdict == "unknown"


@pytest.mark.parametrize(
    ("file", "text", "name", "verdict"),
    [
        ("sys/fs/cgroup/cpu.max", "max 100000\n", "cpu-quota", "pass"),
        ("sys/fs/cgroup/cpu.max", None, "cpu-quota", "unknown"),
        ("sys/fs/cgroup/cpu.stat", "nr_periods 100\nnr_throttled 7\nthrottled_usec 1\n", "cpu-throttled", "warn"),
        ("sys/fs/cgroup/cpu.stat", "usage_usec 1\n", "cpu-throttled", "unknown"),
        ("sys/fs/cgroup/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", "cpu-throttled", "pass"),
        ("sys/fs/cgroup/memory.max", "2147483648\n", "memory-limit", "warn"),
        ("proc/stat", "cpu  50 0 0 40 0 0 0 10 0 0\ncpu0 0\n", "cpu-steal", "warn"),
        ("proc/stat", "cpu  50 0 0 40\n", "cpu-steal", "unknown"),
        ("proc/stat", "", "load", "unknown"),
        ("proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 100 kB\n", "memory-available", "fail"),
        ("proc/meminfo", "MemTotal: lots\n", "memory-available", "unknown"),
        ("proc/loadavg", "64.0 1 1 1/1 1\n", "load", "warn"),
        ("proc/loadavg", "", "load", "unknown"),
        ("proc/loadavg", "much\n", "load", "unknown"),
        ("proc/loadavg", "nan 1 1 1/1 1\n", "load", "unknown"),
        ("proc/cpuinfo", "processor: 0\n", "cpu-model", "unknown"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n", "cpu-governor", "warn"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", None, "cpu-governor", "unknown"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "clock-source", "warn"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", None, "clock-source", "unknown"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "hugepages", "warn"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "\n", "hugepages", "unknown"),
    ],
)
def test_one_file_decides_one_check(probed, file, text, name, verdict):
    made = probed(**{file.replace("/", "__"): text})
    assert made[name].verdict == verdict, made[name]


def test_powersave_is_the_fast_governor_of_adaptive_drivers(probed):
    folder = "sys__devices__system__cpu__cpu0__cpufreq__"
    made = probed(**{f"{folder}scaling_governor": "powersave\n", f"{folder}scaling_driver": "intel_pstate\n"})
    assert made["cpu-governor"].verdict == "pass"


def test_a_host_that_shows_nothing_is_unknown_throughout(tmp_path):
    parts = replace(live_parts("auto", 1), root=tmp_path, affinity=None)
    assert {check.verdict for check in outcome(HostProbe(), parts, THRESHOLDS)} == {"unknown"}


def test_throttling_between_two_readings():
    before = Throttling(100, 10, 1.0)
    assert throttled_percent(before, Throttling(200, 12, 1.5)) == 2.0
    assert throttled_percent(before, before) == 0.0
