"""Every recorded or written host gives what is written beside it; one is added by dropping in a file."""

import json
import subprocess
import sys
from functools import cache

import pytest

from probes.probe import chosen, outcome
from probes.replay import load_replay
from probes.verdict import decide
from tests.probes.played import HOSTS, THRESHOLDS

FIXTURES = sorted(HOSTS.glob("*.json"))
SCHEDULES = ("auto", "spin", "yield", "blocking")


@cache
def judged(path):
    """As the supervisor does it, in one process: the probes of each schedule flag on parts of their own."""
    replay = load_replay(path)
    checks = []
    for schedule in SCHEDULES:
        with replay.parts(schedule, replay.threads) as parts:
            for probe in chosen(replay.target, quick=False):
                if probe.schedule == schedule:
                    checks += outcome(probe, parts, THRESHOLDS)
    return decide(checks, THRESHOLDS), checks


def test_there_are_hosts_of_every_kind_that_is_known():
    kinds = {load_replay(path).fixture.expect.verdict for path in FIXTURES}
    assert kinds == {"accept", "accept with warnings", "reject"}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_host_is_judged_as_is_written_beside_it(path):
    judgement, checks = judged(path)
    expected = load_replay(path).fixture.expect
    assert (judgement.decision, judgement.exit_code) == (expected.verdict, expected.exit_code), judgement.reasons
    if expected.first_reason is None:
        assert judgement.reasons == ()
    else:
        assert judgement.reasons[0].startswith(expected.first_reason)
    assert not [check for check in checks if "failed with" in check.why], "a probe stumbled over the host"


@pytest.mark.parametrize("name", ["healthy_h200", "xid_79", "nvml_half_raises"])
def test_the_command_says_the_same(name):
    path = HOSTS / f"{name}.json"
    command = [sys.executable, "-m", "ladders.cli", "probe", "--replay", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    expected = load_replay(path).fixture.expect
    assert done.returncode == expected.exit_code, done.stderr
    shown = json.loads(done.stdout)
    assert shown["verdict"] == expected.verdict
    assert shown["reasons"][:1] == list(judged(path)[0].reasons[:1])


def test_what_a_check_leaves_unknown_says_why():
    for path in FIXTURES:
        for check in judged(path)[1]:
            assert check.why, check
