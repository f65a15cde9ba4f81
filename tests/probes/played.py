"""Hosts that differ from the healthy one in what a test says."""

import json
from contextlib import contextmanager
from pathlib import Path

from probes.probe import outcome
from probes.replay import load_replay
from probes.thresholds import load_thresholds

HOSTS = Path(__file__).parents[1] / "fixtures/hosts"
HEALTHY = HOSTS / "healthy_h200.json"
CARD = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
PORT = "sys/devices/pci0000:3a/0000:3a:00.0"
THRESHOLDS = load_thresholds()


def written(folder, **differences):
    """Path of a fixture like the healthy host but for these keys."""
    path = folder / "host.json"
    path.write_text(json.dumps({"like": str(HEALTHY), "written_from": "a test", **differences}))
    return path


@contextmanager
def played(folder, **differences):
    """The parts of such a host."""
    replay = load_replay(written(folder, **differences))
    with replay.parts("auto", replay.threads) as parts:
        yield parts


def checks_of(probe, folder, **differences):
    """What a probe says of such a host, by check."""
    with played(folder, **differences) as parts:
        return {check.name: check for check in outcome(probe, parts, THRESHOLDS)}
