"""A probe's child whose probes do what broken drivers do; run by test_supervisor.py in place of `probes.child`."""

import os
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

from probes import child
from probes.live.parts import live_parts
from probes.parts import UnavailableError


@dataclass(frozen=True)
class Misbehaving:
    name: str
    names: tuple[str, ...]
    does: object = None
    needs: str = "host"
    quick: bool = True
    limit_s: float = 0.3
    schedule: str = "auto"

    def run(self, parts, thresholds):
        made = [thresholds.judge(name, 0) for name in self.names]
        if self.does is not None:
            self.does(parts)
        return made


def refuse(parts):
    raise UnavailableError("hidden here")


def divide(parts):
    return 1 / 0


def hang(parts):
    time.sleep(60)


def die(parts):
    print("the driver's last words", file=sys.stderr)
    os._exit(7)


def talk(parts):
    print("noise from a library", flush=True)
    os.write(1, b"{}\n")


def open_gpu(parts):
    parts.open_gpu()


PROBES = (
    Misbehaving("well", ("cpuset",)),
    Misbehaving("refuses", ("cpu-quota",), refuse),
    Misbehaving("divides", ("cpu-steal", "load"), divide),
    Misbehaving("hangs", ("hugepages", "host-triad"), hang),
    Misbehaving("dies", ("cpu-model",), die),
    Misbehaving("talks", ("clock-source",), talk),
    Misbehaving("opens", ("gpu",), open_gpu, needs="gpu"),
    Misbehaving("opens-too", ("sync-p50",), open_gpu, needs="gpu"),
    Misbehaving("spins", ("sync-p50-spin",), open_gpu, needs="gpu", schedule="spin"),
    Misbehaving("last", ("cpu-throttled",)),
)


def hanging_parts(order):
    return nullcontext(replace(live_parts(order.schedule, order.threads), open_gpu=lambda: hang(None)))


def main():
    child.PROBES = PROBES
    if "gpu-hangs" in sys.argv:
        child.OPEN_LIMIT_S = 0.3
        child._parts = hanging_parts
    child.main()


if __name__ == "__main__":
    main()
