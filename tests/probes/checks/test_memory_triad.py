from dataclasses import replace

from probes.checks.memory_triad import WINDOWS, MemoryTriadProbe
from probes.live.parts import live_parts
from probes.probe import outcome
from probes.thresholds import load_thresholds

THRESHOLDS = load_thresholds()


class SteppedClock:
    """Time that passes only in the work."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time


def parts_of(tmp_path, clock, work):
    return replace(live_parts("auto", 2), root=tmp_path, clock=clock, bind_host_triad=work)


def test_gigabytes_a_second_are_bytes_over_time(tmp_path):
    clock, asked = SteppedClock(), []

    def bind(nbytes, threads):
        asked.append((nbytes, threads))

        def run():
            clock.time += 0.03125

        return run, 10**9

    made = {check.name: check for check in outcome(MemoryTriadProbe(), parts_of(tmp_path, clock, bind), THRESHOLDS)}
    assert made["host-triad"].value == 32.0
    assert made["cpu-throttled-under-load"].verdict == made["cpu-stolen-under-load"].verdict == "unknown"
    assert asked == [(768 * 2**20, 2)]
    assert clock.time >= WINDOWS * 0.2


def test_little_memory_is_not_filled(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 900000 kB\nMemAvailable: 400000 kB\n")
    clock, asked = SteppedClock(), []

    def bind(nbytes, threads):
        asked.append(nbytes)

        def run():
            clock.time += 1

        return run, nbytes

    outcome(MemoryTriadProbe(), parts_of(tmp_path, clock, bind), THRESHOLDS)
    assert asked == [400000 * 1024 // 4]


def test_a_clock_that_stands_still_is_unknown_not_endless(tmp_path):
    made = outcome(
        MemoryTriadProbe(),
        parts_of(tmp_path, SteppedClock(), lambda nbytes, threads: (lambda: None, nbytes)),
        THRESHOLDS,
    )
    assert {check.why for check in made} == {"the clock did not move"}


def test_throttling_meanwhile_is_seen(tmp_path):
    group = tmp_path / "sys/fs/cgroup"
    (tmp_path / "proc/self").mkdir(parents=True)
    group.mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "proc/self/mountinfo").write_text("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    clock, runs = SteppedClock(), [0]

    def run():
        clock.time += 0.1
        runs[0] += 1
        (group / "cpu.stat").write_text(f"nr_periods {runs[0]}\nnr_throttled {runs[0] // 2}\nthrottled_usec 5\n")

    made = outcome(MemoryTriadProbe(), parts_of(tmp_path, clock, lambda nbytes, threads: (run, nbytes)), THRESHOLDS)
    assert made[0].name == "cpu-throttled-under-load"
    assert made[0].verdict == "fail"
    assert 40 <= made[0].value <= 60
