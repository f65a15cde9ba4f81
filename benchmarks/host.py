"""What this host can run, and whether it is to be believed. May import ladders and probes."""

from __future__ import annotations

import json
import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.rows import SUITES
from ladders.contenders import CONTENDERS
from ladders.scenario import load_scenario
from probes.identity import gpu_of_this_host
from probes.passport import take_passport

OURS = "engine-"


def has_gpu() -> bool:
    """Whether a driver shows a card."""
    return gpu_of_this_host() is not None


def contenders(ours: bool) -> list[str]:
    """Those of the suite that can be measured here: the list is built so that asv starts no process to skip one."""
    return [
        name for name, contender in CONTENDERS.items() if name.startswith(OURS) == ours and find_spec(contender.package)
    ]


def rungs(target: str) -> list[str]:
    """Rungs of the suite, in its order."""
    return [rung.name for rung in load_scenario(str(SUITES[target])).rungs]


def refuse_unbelievable(target: str) -> None:
    """Raise `NotImplementedError`, which asv shows as n/a, on a host that may not be measured.

    That is one whose last ``dyno probe`` rejected it for this target, or which is not the one in asv's machine file:
    results are filed under the machine, and passports must not be mixed.
    """
    for reason in _reasons(target):
        raise NotImplementedError(reason)


@cache
def _reasons(target: str) -> list[str]:
    passport = take_passport()
    probe, found = passport["probe"], []
    if probe and probe["target"] == target and probe["verdict"] == "reject":
        found += [f"this host is rejected: {reason}" for reason in probe["reasons"]]
    filed = _filed_passport()
    if filed not in (None, passport["digest"]):
        found.append(
            f"asv's machine file is of passport {filed}, this host is {passport['digest']}: run dyno asv-machine"
        )
    return found


def _filed_passport() -> str | None:
    """Passport digest that `dyno asv-machine` left in asv's machine file; None without one."""
    try:
        machines = json.loads((Path.home() / ".asv-machine.json").read_text())
        return machines[platform.node()]["passport"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
