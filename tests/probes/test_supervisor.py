import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from probes.supervisor import supervise
from probes.thresholds import load_thresholds
from tests.probes.misbehaving import PROBES

HERE = Path(__file__).parent
BY_NAME = {probe.name: probe for probe in PROBES}
CHILD = (sys.executable, str(HERE / "misbehaving.py"))


def run(*names, child=CHILD, **how):
    chosen = [BY_NAME[name] for name in names]
    made = list(supervise(chosen, load_thresholds(), threads=1, child=child, **how))
    assert sorted(check.name for check in made) == sorted(name for probe in chosen for name in probe.names)
    return {check.name: check for check in made}


def test_checks_come_home_from_the_child():
    made = run("well", "last")
    assert made["cpuset"] == load_thresholds().judge("cpuset", 0)
    assert made["cpu-throttled"].verdict == "pass"


def test_whatever_a_probe_raises_is_unknown():
    made = run("refuses", "divides", "last")
    assert made["cpu-quota"].why == "hidden here"
    assert made["cpu-steal"].why == made["load"].why == "the probe failed with ZeroDivisionError: division by zero"
    assert {made[name].verdict for name in ("cpu-quota", "cpu-steal", "load")} == {"unknown"}
    assert made["cpu-throttled"].verdict == "pass"


def test_a_probe_that_hangs_is_unknown_and_a_new_child_goes_on():
    made = run("well", "hangs", "last")
    assert made["hugepages"].why == made["host-triad"].why == "took longer than 0.3 s"
    assert made["cpuset"].verdict == made["cpu-throttled"].verdict == "pass"


def test_a_child_that_dies_says_its_last_words():
    made = run("dies", "last")
    assert made["cpu-model"].verdict == "unknown"
    assert "exit code 7" in made["cpu-model"].why
    assert "the driver's last words" in made["cpu-model"].why
    assert made["cpu-throttled"].verdict == "pass"


def test_what_libraries_print_does_not_reach_the_protocol():
    made = run("talks", "last")
    assert {check.verdict for check in made.values()} == {"pass"}


def test_a_gpu_that_hangs_while_it_opens_is_asked_once():
    made = run("well", "opens", "opens-too", "spins", "last", child=(*CHILD, "gpu-hangs"))
    reason = "opening the GPU: took longer than 0.3 s"
    assert made["gpu"].why == made["sync-p50"].why == made["sync-p50-spin"].why == reason
    assert made["cpuset"].verdict == made["cpu-throttled"].verdict == "pass"


def test_the_whole_has_a_limit_too():
    made = run("well", "hangs", "last", limit_s=0.0)
    assert {check.why for check in made.values()} == {"the 0 s of the whole probe were over"}


@pytest.mark.parametrize("code", ["", "raise SystemExit('no')", "print('{')", "import time; time.sleep(0.1)"])
def test_a_child_that_is_none_leaves_all_unknown(code):
    made = run("well", "last", child=(sys.executable, "-c", code))
    assert {check.verdict for check in made.values()} == {"unknown"}


def test_a_caller_who_stops_reading_leaves_no_child():
    stream = supervise([BY_NAME["well"], BY_NAME["hangs"]], load_thresholds(), threads=1, child=CHILD)
    next(stream)
    (child,) = (process for process in psutil.Process().children() if "misbehaving.py" in " ".join(process.cmdline()))
    stream.close()
    assert not child.is_running()


def test_the_child_dies_with_its_parent():
    code = (
        "from tests.probes.test_supervisor import *\n"
        "stream = supervise([BY_NAME['well'], BY_NAME['hangs']], load_thresholds(), threads=1, child=CHILD)\n"
        "next(stream); print('running', flush=True); next(stream)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=HERE.parents[1])
    assert parent.stdout.readline() == b"running\n"
    (child,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    give_up = time.monotonic() + 10
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < give_up
        time.sleep(0.01)
